// A libcuda that is too old, or none at all by that name: it lacks most functions.
int cuInit(unsigned flags) { return (int)flags; }
