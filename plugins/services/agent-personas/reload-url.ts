import { isIP } from 'node:net'
import { personaError } from './errors.js'

const PROTOCOLS: Readonly<Record<string, string>> = { 'http:': 'ws:', 'ws:': 'ws:', 'https:': 'wss:', 'wss:': 'wss:' }

/**
 * The socket that an address stands for. Without DNS: a name that leads here today may lead elsewhere tomorrow, so only
 * `localhost`, addresses of the loopback, and hosts that the operator wrote down are taken. Throws
 * `persona.reload_url_refused`. Pure.
 * @param hosts further ones, as they stand in an address
 */
export function reloadSocket (url: string, hosts: readonly string[]): URL {
  const parsed = URL.canParse(url) ? new URL(url) : null
  const protocol = parsed === null ? undefined : PROTOCOLS[parsed.protocol]
  if (parsed === null || protocol === undefined) throw refused(url, 'it is not an http, https, ws or wss address')
  if (parsed.username !== '' || parsed.password !== '') throw refused(url, 'it contains a user name or password')
  if (!isLoopback(parsed.hostname) && !hosts.includes(parsed.hostname)) {
    throw refused(url, `${parsed.hostname} is not this machine; \`[plugins.config.agent-personas] reload_hosts\` lists further hosts`)
  }
  const rest = parsed.href.slice(parsed.protocol.length)
  const socket = new URL(protocol + rest)
  socket.hash = ''
  // the resolver of the machine has no say in what `localhost` is
  if (socket.hostname === 'localhost') socket.hostname = '127.0.0.1'
  return socket
}

function isLoopback (host: string): boolean {
  if (host === 'localhost' || host === '[::1]') return true
  return isIP(host) === 4 && host.startsWith('127.')
}

function refused (url: string, why: string): Error {
  const shown = url.length > 200 ? `${url.slice(0, 200)}…` : url
  return personaError('persona.reload_url_refused', `'${shown}' cannot be a reload URL: ${why}`, { param: 'reload_url' })
}
