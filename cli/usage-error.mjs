/** Arguments that can't be: the answer is how to call the program. */
export class UsageError extends Error {}
