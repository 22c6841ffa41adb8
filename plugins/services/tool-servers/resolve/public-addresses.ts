import { lookup, type LookupAddress } from 'node:dns'
import { isIP } from 'node:net'
import { isPrivateName, isPublicAddress } from './public-address.js'

/** All addresses of a name. */
export type AddressesOf = (host: string) => Promise<readonly LookupAddress[]>

export class NotPublicError extends Error {
  constructor (host: string) {
    super(`${host} is not on the public internet`)
    this.name = 'NotPublicError'
  }
}

/**
 * The addresses of a host, at least one; an IP address is its own. Rejects with `NotPublicError` when one of them is not
 * public, for which one would be taken is for the other side to choose, and with what keeps the name from being looked up.
 */
export async function publicAddresses (host: string, addressesOf: AddressesOf = resolveName): Promise<readonly LookupAddress[]> {
  if (isPrivateName(host)) throw new NotPublicError(host)
  const addresses = await hostAddresses(host, addressesOf)
  if (!addresses.every(({ address }) => isPublicAddress(address))) throw new NotPublicError(host)
  return addresses
}

/** The same without the question where they are. */
export async function hostAddresses (host: string, addressesOf: AddressesOf = resolveName): Promise<readonly LookupAddress[]> {
  const family = isIP(host)
  const addresses = family !== 0 ? [{ address: host, family }] : await addressesOf(host)
  if (addresses.length === 0) throw new Error(`the name ${host} has no address`)
  return addresses
}

/** Of a URL, without the brackets of IPv6. */
export function hostOf ({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function resolveName (host: string): Promise<readonly LookupAddress[]> {
  return new Promise((resolve, reject) => {
    lookup(host, { all: true }, (error, found) => { if (error === null) resolve(found); else reject(error) })
  })
}
