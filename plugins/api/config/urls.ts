import type { IncomingHttpHeaders } from 'node:http'
import type { Urls } from './schemas.js'

export interface UrlFacts {
  readonly headers: IncomingHttpHeaders
  /** The port that the gateway listens on. */
  readonly port: number
  readonly variable: (name: string) => string | undefined
  /** Where the image engine listens, or will. */
  readonly imagePort: number
}

const OPENWEBUI_PORT = 3001

/**
 * Addresses as the caller can use them: on the host that he asked, also through a proxy that says so. A configured public
 * address wins. Pure.
 */
export function discoverUrls ({ headers, port, variable, imagePort }: UrlFacts): Urls {
  const proto = first(headers['x-forwarded-proto']) === 'https' ? 'https' : 'http'
  const forwarded = authority(first(headers['x-forwarded-host']))
  const host = forwarded ?? authority(headers.host) ?? { name: '127.0.0.1', port: String(port) }
  const at = (otherPort: number): string => `${proto}://${host.name}:${otherPort}`
  const configured = (name: string): string => {
    const value = variable(name) ?? ''
    return URL.canParse(value) ? value.replace(/(?<!\/)\/+$/, '') : ''
  }
  const openwebui = configured('SVC_OPENWEBUI_PUBLIC_URL')
  const hermes = configured('SVC_HERMES_PUBLIC_URL')
  return {
    api: `${proto}://${host.name}${host.port === '' ? '' : `:${host.port}`}`,
    openwebui: openwebui === '' ? at(OPENWEBUI_PORT) : openwebui,
    openwebui_enabled: openwebui !== '',
    hermes,
    hermes_enabled: hermes !== '',
    comfyui: configured('SVC_COMFYUI_PUBLIC_URL') || at(imagePort)
  }
}

interface Authority { readonly name: string, readonly port: string }

/** Host and port of a header; null for what is no authority. */
function authority (text: string | undefined): Authority | null {
  const match = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?$/.exec(text ?? '')
  return match === null ? null : { name: match[1]!, port: match[2] ?? '' }
}

/** A chain of proxies lists what the client asked first. */
function first (header: string | string[] | undefined): string | undefined {
  const text = Array.isArray(header) ? header[0] : header
  return text?.split(',', 1)[0]?.trim()
}
