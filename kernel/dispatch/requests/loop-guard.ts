import { randomBytes } from 'node:crypto'
import { svcError, type SvcError } from '../../contract/index.js'

/** Names the gateways that a request came through, each by a word that it made up for this run. */
export const VIA_HEADER = 'x-svc-via'
const MOST_GATEWAYS = 8

/** A random word and no installation's name: upstreams of other people see it. */
export function newGatewayToken (): string {
  return randomBytes(6).toString('hex')
}

export function gatewaysOf (header: string | readonly string[] | undefined): readonly string[] {
  const text = typeof header === 'string' ? header : header?.join(',') ?? ''
  return text === '' ? [] : text.split(',').map(word => word.trim()).filter(word => word !== '')
}

/** What the next gateway is told. Throws `dispatch.loop` for a request that was here before, or goes on for ever. Pure. */
export function viaFor (header: string | readonly string[] | undefined, token: string): string {
  if (header === undefined) return token
  const passed = gatewaysOf(header)
  if (passed.includes(token)) throw loop('looped back to this gateway: its upstreams, or theirs, point here')
  if (passed.length >= MOST_GATEWAYS) throw loop(`has already passed ${passed.length} gateways, and at most ${MOST_GATEWAYS} are allowed`)
  return [...passed, token].join(', ')
}

function loop (what: string): SvcError {
  return svcError('dispatch.loop', `the request ${what}; name another upstream in \`model\`, or take the loop out of upstreams.toml`)
}
