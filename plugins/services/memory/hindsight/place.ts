/** Where a Hindsight server is, and what lets the gateway in. */
export interface HindsightPlace {
  readonly url: string
  readonly key: string | undefined
  /** Name of the variable that the key comes from; empty for none. */
  readonly keyName: string
}
