/** Why a host cannot be asked, in words for its operator. Holds nothing that the host sent but the name of a node. */
export class HostTrouble extends Error {}

interface Asked {
  readonly host: string
  readonly port: number
}

const UNTRUSTED: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'CERT_UNTRUSTED'
])

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused; check host and port',
  ENOTFOUND: 'no such host; check its spelling and DNS',
  EAI_AGAIN: 'its name cannot be resolved; check DNS',
  EHOSTUNREACH: 'no route to the host; check the network',
  ENETUNREACH: 'no route to the host; check the network',
  ECONNRESET: 'the connection was reset',
  UND_ERR_SOCKET: 'the connection was reset',
  ERR_SSL_WRONG_VERSION_NUMBER: 'no TLS on this port; check the port, the API of Proxmox is on 8006',
  CERT_HAS_EXPIRED: 'its certificate has expired; renew it, or set verify_ssl to false',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name; use that name as host, or set verify_ssl to false'
}

/** A failed question in words; only codes of this machine's own network stack count, never a text of the other side. Pure. */
export function troubleText (error: unknown, { host, port }: Asked): string {
  const address = `${host}:${port}`
  if (error instanceof HostTrouble) return `${address} ${error.message}`
  const { code } = error as NodeJS.ErrnoException
  if (code === undefined) return `${address} cannot be reached; check host and port`
  if (UNTRUSTED.has(code)) {
    return `${address}: its certificate is not trusted here, as self-signed ones are not; install one that this machine trusts, ` +
      'or set verify_ssl to false'
  }
  return `${address}: ${reasons[code] ?? 'it cannot be reached; check host and port'}`
}

/** An answer that is no success. `path` is below `/api2/json`. Pure. */
export function refusal (status: number, path: string): HostTrouble {
  switch (status) {
    case 401: return new HostTrouble('does not accept the token (401); check user, token_name and token_value')
    case 403: return new HostTrouble(`does not let the token read ${path} (403); give the token the role PVEAuditor on /`)
    case 595:
    case 596:
    case 599: return new HostTrouble(`cannot reach its own node for ${path} (${status}); check the cluster`)
    default: return new HostTrouble(`answers ${path} with ${status}; see the log of pveproxy there`)
  }
}
