export type RuntimeDriver = 'docker' | 'podman' | 'process'

/** The active driver and why it was taken. */
export interface RuntimeInfo {
  readonly driver: RuntimeDriver
  readonly version: string
  /** Socket or URL of the container engine; null for child processes. */
  readonly endpoint: string | null
  readonly reason: string
}
