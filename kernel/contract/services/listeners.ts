export interface ListenerOptions {
  /** 0 takes any free one. */
  readonly port: number
  /** Paths that are other routes at this address: `{ '/': '/api/health' }`. */
  readonly places?: Readonly<Record<string, string>>
}

export interface Listener {
  readonly port: number
  /** Stops accepting; connections that are in use end with their answers. Idempotent. */
  close (): void
}

/**
 * Further addresses of the gateway: the same routes behind the same guards and bounds, on the host that it listens on.
 * Whatever is open when the gateway stops is closed with it.
 */
export interface ListenerService {
  /** Throws `gateway.listen_failed`, also while the gateway does not listen itself. */
  open (options: ListenerOptions): Promise<Listener>
}
