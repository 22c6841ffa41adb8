/** The top level of a JSON body. Only what is asked for is parsed. */
export interface JsonBody {
  /** Names of the top-level members, as often as they occur; null ones too. */
  keys (): readonly string[]
  /** False when the member is absent or null: on the wire both say "not given". */
  has (key: string): boolean
  /** The value when it is a string, else null. */
  string (key: string): string | null
  /** The value parsed; undefined when the member is absent. Throws `request.invalid_json` when it cannot be read. */
  value (key: string): unknown
}

/** Changes of a JSON body. Bytes outside of what changes stay as they came. Values are JSON values; undefined is skipped. */
export interface BodyEdits {
  /** Top-level members to set, whatever the request says. */
  readonly set?: Readonly<Record<string, unknown>>
  /**
   * Top-level members to add where the request has none, or null. An object goes into an object that the request has
   * in its place, member by member, by the same rule; any other value of the request wins.
   */
  readonly add?: Readonly<Record<string, unknown>>
  /** Names of top-level members to take out. */
  readonly drop?: readonly string[]
}
