import { isIP, type LookupFunction } from 'node:net'
import { Agent, buildConnector, type Dispatcher } from 'undici'
import { publicAddresses, type AddressesOf } from './resolve/public-addresses.js'

const CONNECT_MS = 10_000

/**
 * HTTP to servers that a third party named: each connection goes to an address of the public internet, whatever their names
 * have come to mean. What is not there fails with `NotPublicError`.
 */
export function createPublicAgent (addressesOf?: AddressesOf): Dispatcher {
  const lookup: LookupFunction = (host, options, done) => {
    publicAddresses(host, addressesOf).then(found => {
      if (options.all === true) done(null, [...found])
      else done(null, found[0]!.address, found[0]!.family)
    }, (error: Error) => done(error, '', 4))
  }
  const connect = buildConnector({ timeout: CONNECT_MS, lookup })
  return new Agent({
    connect: (options, done) => {
      const host = options.hostname.replace(/^\[|\]$/g, '')
      // an IP address is not looked up
      if (isIP(host) === 0) connect(options, done)
      else publicAddresses(host).then(() => connect(options, done), (error: Error) => done(error, null))
    },
    headersTimeout: 0,
    bodyTimeout: 0
  })
}
