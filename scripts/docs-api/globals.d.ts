// What the runtime has, as far as the types name it.
interface AbortSignal {
  readonly aborted: boolean
}
declare var AbortSignal: { prototype: AbortSignal }
