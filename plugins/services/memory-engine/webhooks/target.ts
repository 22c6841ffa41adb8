import { BlockList, isIP } from 'node:net'

/** Everything that is not the public internet: this machine, private and shared networks, tests, multicast, reserved. */
const notPublic = new BlockList()
const subnets = [
  '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24',
  '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'
]
/** Within the public range of IPv6: special purposes, documentation, and those that stand for an IPv4 address. */
const subnets6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']
for (const [list, family] of [[subnets, 'ipv4'], [subnets6, 'ipv6']] as const) {
  for (const subnet of list) {
    const [net, bits] = subnet.split('/') as [string, string]
    notPublic.addSubnet(net, Number(bits), family)
  }
}
const public6 = new BlockList()
public6.addSubnet('2000::', 3, 'ipv6')

/** Whether an IP address is one of the public internet. Pure. */
export function isPublicAddress (address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !notPublic.check(address, 'ipv4')
  return family === 6 && public6.check(address, 'ipv6') && !notPublic.check(address, 'ipv6')
}

/**
 * Why a webhook may not go to this URL, as the wire says it; null if it may. A name that resolves to a private address is
 * refused when it is called: what it resolves to changes. Pure.
 */
export function targetProblem (text: string): string | null {
  let url
  try {
    url = new URL(text)
  } catch {
    return `Invalid webhook URL: '${text.slice(0, 200)}'`
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return `Webhook URL scheme '${url.protocol.slice(0, -1)}' is not allowed; use http or https`
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const name = host.toLowerCase().replace(/\.$/, '')
  const isPrivate = isIP(host) !== 0 ? !isPublicAddress(host)
    : name === 'localhost' || /\.(localhost|local|internal|home\.arpa)$/.test(name)
  return isPrivate ? `Webhook URL host '${host}' targets a private/loopback/link-local address, which is not an allowed destination` : null
}
