/** The files that this gateway runs from, and what can start it again. */
export interface Installation {
  /** Root folder of the package, without symbolic links. */
  readonly root: string
  /**
   * Ends the gateway as a stop does, with running answers let end, and has what started it start it once more. Returns at
   * once. Null where nothing would start it again.
   */
  readonly restart: (() => void) | null
}
