import { isSvcError, type SvcError } from 'svc-gateway/plugin'

export const PARSE_ERROR = -32700
export const INVALID_REQUEST = -32600
export const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
export const INTERNAL = -32603
export const NO_RESOURCE = -32002
/** Of the transport: sessions, media types, versions. */
export const TRANSPORT = -32000
export const NO_SESSION = -32001

export type Params = Readonly<Record<string, unknown>>
export type RpcId = string | number

export interface RpcRequest {
  readonly jsonrpc: '2.0'
  readonly id: RpcId
  readonly method: string
  readonly params?: Params
}

export type RpcMessage = Omit<RpcRequest, 'id'> & { readonly id?: RpcId }

/** An error of the protocol, not of a tool: that one is a result. */
export class RpcError extends Error {
  readonly code: number
  readonly data: unknown

  constructor (code: number, message: string, data?: unknown) {
    super(message)
    this.code = code
    this.data = data
  }
}

export function isObject (value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isMessage (value: unknown): value is RpcMessage {
  if (!isObject(value) || value.jsonrpc !== '2.0' || typeof value.method !== 'string') return false
  const { id, params } = value
  return (id === undefined || isId(id)) && (params === undefined || isObject(params))
}

export function isId (value: unknown): value is RpcId {
  return typeof value === 'string' || typeof value === 'number'
}

/** An answer to something that the server asked: nothing here asks. */
export function isResponse (value: unknown): boolean {
  return isObject(value) && value.jsonrpc === '2.0' && ('result' in value || 'error' in value) && !('method' in value)
}

export function errorText (id: RpcId | null, code: number, message: string, data?: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', error: { code, message, ...(data === undefined ? {} : { data }) }, id })
}

/** Any failure as an error of the protocol. */
export function toRpcError (error: unknown): RpcError {
  if (error instanceof RpcError) return error
  if (!isSvcError(error)) return new RpcError(INTERNAL, 'internal error')
  return new RpcError(codeOf(error), error.message, { code: error.code, http_status: error.status, details: error.details })
}

function codeOf ({ code, status }: SvcError): number {
  if (code === 'mcp.unknown_resource') return NO_RESOURCE
  return status >= 500 ? INTERNAL : INVALID_PARAMS
}
