import { BlockList, isIP } from 'node:net'

/** Everything that is not the public internet: this machine, private and shared networks, tests, multicast, reserved. */
const notPublic = new BlockList()
const subnets = [
  '0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24', '192.0.2.0/24',
  '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'
]
/** Within the public range of IPv6: special purposes, documentation, and those that stand for an IPv4 address. */
const subnets6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']
for (const subnet of subnets) add(subnet, 'ipv4')
for (const subnet of subnets6) add(subnet, 'ipv6')
const public6 = new BlockList()
public6.addSubnet('2000::', 3, 'ipv6')

function add (subnet: string, family: 'ipv4' | 'ipv6'): void {
  const [net, bits] = subnet.split('/') as [string, string]
  notPublic.addSubnet(net, Number(bits), family)
}

/** Whether an IP address is one of the public internet. Pure. */
export function isPublicAddress (address: string): boolean {
  const family = isIP(address)
  if (family === 4) return !notPublic.check(address, 'ipv4')
  return family === 6 && public6.check(address, 'ipv6') && !notPublic.check(address, 'ipv6')
}

/** Names that never mean the public internet, whatever they resolve to. Pure. */
export function isPrivateName (host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return name === 'localhost' || /\.(localhost|local|internal|home\.arpa)$/.test(name)
}
