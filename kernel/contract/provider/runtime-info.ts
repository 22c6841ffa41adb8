/** A driver that runs engines, and why it was taken. */
export interface RuntimeInfo {
  /** `docker`, `podman`, `process`, or the name that a plugin's driver has. */
  readonly driver: string
  readonly version: string
  /** Socket or URL of what runs the engines; null for processes of this host. */
  readonly endpoint: string | null
  readonly reason: string
}

/** A driver beside others, as `GET /api/status` lists it. */
export interface RuntimeView {
  /** What a slot's `runtime` says to get it. */
  readonly name: string
  readonly form: 'container' | 'process'
  /** Slots get it that ask for none. */
  readonly default: boolean
  /** Null while it is not open. */
  readonly info: RuntimeInfo | null
  /** Why it is not open; null: it is, or was not needed yet. */
  readonly problem: string | null
}
