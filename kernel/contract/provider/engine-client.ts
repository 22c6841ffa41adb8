import { svcError } from '../errors/errors.js'

/** Where an engine listens, as its runtime driver reports it; never assumed to be this host. */
export interface EngineAddress {
  readonly host: string
  readonly port: number
  /** The ports of `EngineProvider.ports` by name, as they are reached from here; absent: the engine has none. */
  readonly ports?: Readonly<Record<string, number>>
  /** Names in lower case. What every request to the engine carries (`EngineProvider.headers`); absent: nothing. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface EngineRequest {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  /** One of `EngineProvider.ports`; default: the main port. */
  readonly port?: string
  /** Path and query on the engine, starting with a slash. */
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as is; an object is sent as JSON. */
  readonly body?: Buffer | string | object
  readonly signal: AbortSignal
}

export interface EngineResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body: AsyncIterable<Buffer>
  /** Reads the whole body (bounded to 16 MiB) and parses it. */
  json (): Promise<unknown>
  text (): Promise<string>
}

/**
 * A plain HTTP client bound to one running engine. Throws `dispatch.upstream_unavailable` when the engine
 * cannot be reached; a non-2xx answer is returned, not thrown. The signal cancels in every phase.
 */
export interface EngineClient {
  readonly address: EngineAddress
  request (request: EngineRequest): Promise<EngineResponse>
}

/** The address of a further port; undefined is the main one. Throws for a port that the engine does not have. Pure. */
export function atPort (address: EngineAddress, name: string | undefined): EngineAddress {
  if (name === undefined) return address
  const port = address.ports?.[name]
  if (port === undefined) throw svcError('dispatch.upstream_unavailable', `the engine has no port named '${name}'; its provider names its ports in \`ports\``)
  return { ...address, port }
}
