/** Which hosts are on the internet. A browser names its push service; that must not make the agent send to the local network. */
import { lookup } from 'node:dns/promises'
import { BlockList, isIP } from 'node:net'

const PRIVATE = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const)
  PRIVATE.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::', 96],
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const)
  PRIVATE.addSubnet(network, bits, 'ipv6')

/** Names that are local by definition. */
const LOCAL_NAME = /^[^.]*$|\.(localhost|local|internal|intranet|lan|home\.arpa)$/

/** By the text: an address of a private network, or a name that only such a network knows. */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/^\[(.*)\]$/, '$1')
  return isIP(host) === 0 ? LOCAL_NAME.test(host.replace(/\.$/, '')) : isPrivateAddress(host)
}

/** By what the name resolves to now. Throws where it does not resolve. */
export async function leadsInside(hostname: string): Promise<boolean> {
  if (isPrivateHost(hostname)) return true
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return (await lookup(host, { all: true })).some(({ address }) => isPrivateAddress(address))
}

function isPrivateAddress(address: string): boolean {
  // A BlockList treats IPv4 in IPv6 (::ffff:10.0.0.1) as the IPv4 address.
  return PRIVATE.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}
