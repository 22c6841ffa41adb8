import { createCipheriv, createHash } from 'node:crypto'
import { createServer, request, type Server } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'

const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json'

/**
 * Pushes an image straight over the registry's own protocol; returns its digest. Layers of the same place and size
 * have the same bytes in every run, because a registry never gives the room of a blob back by itself.
 */
export async function pushImage (registry: string, name: string, tag: string, layerBytes: readonly number[]): Promise<string> {
  const base = `http://${registry}/v2/${name}`
  const layers = layerBytes.map((size, index) => {
    const tar = tarOf(`layer-${index}.bin`, incompressible(index, size))
    return { diffId: digestOf(tar), blob: gzipSync(tar, { level: 1 }) }
  })
  const config = Buffer.from(JSON.stringify({
    architecture: 'amd64', os: 'linux', config: { Cmd: ['/bin/true'] }, rootfs: { type: 'layers', diff_ids: layers.map(layer => layer.diffId) },
    history: layers.map(() => ({ created_by: 'test' }))
  }))
  for (const blob of [config, ...layers.map(layer => layer.blob)]) await pushBlob(base, blob)
  const manifest = Buffer.from(JSON.stringify({
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: { mediaType: 'application/vnd.docker.container.image.v1+json', size: config.length, digest: digestOf(config) },
    layers: layers.map(({ blob }) => ({ mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip', size: blob.length, digest: digestOf(blob) }))
  }))
  await expectStatus(201, await fetch(`${base}/manifests/${tag}`, { method: 'PUT', headers: { 'content-type': MANIFEST }, body: manifest }))
  return digestOf(manifest)
}

export async function deleteImage (registry: string, name: string, digest: string): Promise<void> {
  await fetch(`http://${registry}/v2/${name}/manifests/${digest}`, { method: 'DELETE' })
}

export interface SlowRegistry {
  /** `127.0.0.1:port`, a registry to the engine. */
  readonly address: string
  /** Layers being fetched right now. */
  readonly open: () => number
  /** Layers that went out whole. */
  readonly sent: () => number
  /** From here on it is as fast as the other. */
  readonly hurry: () => void
  readonly close: () => Promise<void>
}

/** A registry in front of another that hands layers out slowly and hears when the engine hangs up. */
export async function slowRegistry (registry: string, bytesPerSecond: number): Promise<SlowRegistry> {
  let open = 0
  let sent = 0
  let isSlow = true
  const server: Server = createServer((incoming, outgoing) => {
    const upstream = request(`http://${registry}${incoming.url}`, { method: incoming.method, headers: { ...incoming.headers, host: registry } })
    incoming.pipe(upstream)
    upstream.on('error', () => outgoing.destroy())
    upstream.on('response', async response => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers)
      if (!incoming.url?.includes('/blobs/') || Number(response.headers['content-length']) < 10_000) {
        response.pipe(outgoing)
        return
      }
      open += 1
      outgoing.on('close', () => {
        open -= 1
        response.destroy()
      })
      try {
        for await (const chunk of response) {
          outgoing.write(chunk)
          if (isSlow) await new Promise(resolve => setTimeout(resolve, (chunk as Buffer).length / bytesPerSecond * 1000))
          if (outgoing.destroyed) return
        }
        outgoing.end()
        sent += 1
      } catch {
        outgoing.destroy() // the other side went away, which is what the test wants
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    open: () => open,
    sent: () => sent,
    hurry () { isSlow = false },
    async close () {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    }
  }
}

async function pushBlob (base: string, blob: Buffer): Promise<void> {
  const started = await fetch(`${base}/blobs/uploads/`, { method: 'POST' })
  await expectStatus(202, started)
  const location = new URL(started.headers.get('location') ?? '', base)
  location.searchParams.set('digest', digestOf(blob))
  await expectStatus(201, await fetch(location, { method: 'PUT', headers: { 'content-type': 'application/octet-stream' }, body: blob }))
}

async function expectStatus (status: number, response: Response): Promise<void> {
  if (response.status !== status) throw new Error(`the registry said ${response.status}: ${await response.text()}`)
}

function digestOf (bytes: Buffer): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

function incompressible (seed: number, size: number): Buffer {
  return createCipheriv('aes-256-ctr', Buffer.alloc(32, seed), Buffer.alloc(16)).update(Buffer.alloc(size))
}

/** A tar archive of one file. */
function tarOf (name: string, content: Buffer): Buffer {
  const header = Buffer.alloc(512)
  header.write(name, 0)
  header.write('0000644\0', 100)
  header.write('0000000\0', 108)
  header.write('0000000\0', 116)
  header.write(`${content.length.toString(8).padStart(11, '0')}\0`, 124)
  header.write('00000000000\0', 136)
  header.write('        ', 148)
  header.write('0', 156)
  header.write('ustar\0' + '00', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  const padding = Buffer.alloc((512 - content.length % 512) % 512)
  return Buffer.concat([header, content, padding, Buffer.alloc(1024)])
}
