import { generateKeyPairSync, sign } from 'node:crypto'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'

/** An HTTPS server that nobody has a reason to trust. */
export async function badCertificateServer (t: Test): Promise<string> {
  const server = createServer(selfSigned('127.0.0.1'), (_req, res) => { res.end('never seen') })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  t.teardown(() => new Promise<void>(resolve => {
    server.close(() => resolve())
    server.closeAllConnections()
  }))
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A key and a certificate for one name, good for a day. */
export function selfSigned (name: string): { key: string, cert: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const algorithm = sequence(oid('1.2.840.10045.4.3.2'))
  const subject = sequence(tagged(0x31, sequence(oid('2.5.4.3'), tagged(0x0c, Buffer.from(name)))))
  const day = (offset: number): Buffer => {
    const date = new Date(Date.now() + offset * 86_400_000).toISOString().replace(/[-:T]|\.\d+/g, '').slice(2)
    return tagged(0x17, Buffer.from(date))
  }
  const body = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))), tagged(0x02, Buffer.from([1])), algorithm,
    subject, sequence(day(-1), day(1)), subject,
    publicKey.export({ type: 'spki', format: 'der' })
  )
  const certificate = sequence(body, algorithm, tagged(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)])))
  const lines = certificate.toString('base64').replace(/.{64}/g, '$&\n')
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`
  }
}

function tagged (tag: number, content: Buffer): Buffer {
  const size = content.length
  const length = size < 128 ? [size] : size < 256 ? [0x81, size] : [0x82, size >> 8, size & 255]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

function sequence (...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts))
}

function oid (dots: string): Buffer {
  const [first, second, ...rest] = dots.split('.').map(Number)
  const bytes = rest.flatMap(part => {
    const septets = [part & 127]
    for (let left = part >> 7; left > 0; left >>= 7) septets.unshift((left & 127) | 128)
    return septets
  })
  return tagged(0x06, Buffer.from([first! * 40 + second!, ...bytes]))
}
