import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { PassThrough, type Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import { extract, type Header } from 'tar-stream'
import { CliFailure, usageFailure } from '../failure.js'

/** The library's streams are not Node's own, and their types are those of a package that is not ours. */
interface Extract {
  on (event: 'entry', listener: (header: Header, stream: Readable, next: () => void) => void): unknown
  destroy (error: Error): void
}

/** Where a backup keeps the registry; the first one wins. */
const PLACES = ['var/lib/svc/registry/registry.toml', 'registry/registry.toml', 'registry.toml']
const MAX_REGISTRY_BYTES = 64 * 1024 * 1024

/** Programs that unpack what Node cannot, by the first bytes of the file. */
const unpackers: ReadonlyArray<readonly [magic: Buffer, program: string]> = [
  [Buffer.from('BZh'), 'bzip2'],
  [Buffer.from('fd377a585a00', 'hex'), 'xz'],
  [Buffer.from('28b52ffd', 'hex'), 'zstd'],
  [Buffer.from('5d0000', 'hex'), 'xz'],
  [Buffer.from('04224d18', 'hex'), 'lz4']
]

/**
 * The registry in a backup archive, as text; nothing is unpacked to the disk. Every member is looked at: one that would
 * lead out of the place it is unpacked in, a link or a device anywhere makes the archive one that is not to be trusted.
 * Throws a usage failure for whatever is no such archive.
 */
export async function registryInArchive (path: string, signal: AbortSignal): Promise<string> {
  const stats = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') throw usageFailure(`${path} does not exist`)
    throw error
  })
  if (!stats.isFile()) throw usageFailure(`${path} is not a file`)
  const archive = extract()
  const found = collect(path, archive as unknown as Extract)
  try {
    await unpacked(path, archive as unknown as NodeJS.WritableStream, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof CliFailure) throw error
    throw usageFailure(`${path} is not a readable tar archive: ${error instanceof Error ? error.message : String(error)}`)
  }
  const place = PLACES.find(each => found.has(each))
  if (place === undefined) throw usageFailure(`${path} contains no registry`, [`It is expected at ${PLACES.join(', or ')}.`])
  return found.get(place)!
}

/** The files in the places of a registry, once all of the archive has gone through. */
function collect (path: string, archive: Extract): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  archive.on('entry', (header: Header, stream: Readable, next: () => void) => {
    // the member goes down with the archive, which tells why
    stream.on('error', () => {})
    const refuse = (why: string): void => archive.destroy(usageFailure(why))
    const problem = problemOf(header)
    if (problem !== null) return refuse(`${path} is refused: its member ${JSON.stringify(header.name.slice(0, 200))} ${problem}`)
    const name = header.name.replace(/^(\.\/+)+/, '')
    const isWanted = PLACES.includes(name) && header.type === 'file'
    if (isWanted && header.size > MAX_REGISTRY_BYTES) return refuse(`the registry in ${path} has ${header.size} bytes; that is not a registry`)
    const chunks: Buffer[] = []
    stream.on('data', (chunk: Buffer) => { if (isWanted) chunks.push(chunk) })
    stream.on('end', () => {
      if (isWanted) found.set(name, Buffer.concat(chunks).toString('utf8'))
      next()
    })
  })
  return found
}

function problemOf ({ name, type }: Header): string | null {
  if (/link|device|fifo/.test(type)) return `is a ${type === 'symlink' ? 'symbolic link' : type}`
  const parts = name.split(/[/\\]/)
  if (/^[/\\]/.test(name) || /^[A-Za-z]:/.test(name) || parts.includes('..') || name.includes('\0')) return 'points outside the archive'
  return null
}

async function unpacked (path: string, archive: NodeJS.WritableStream, signal: AbortSignal): Promise<void> {
  const head = await firstBytes(path)
  if (head.length === 0) throw usageFailure(`${path} is empty`)
  const source = createReadStream(path)
  if (head[0] === 0x1f && head[1] === 0x8b) return await pipeline(source, createGunzip(), archive, { signal })
  const program = unpackers.find(([magic]) => head.subarray(0, magic.length).equals(magic))?.[1]
  if (program === undefined) return await pipeline(source, archive, { signal })
  await unpackedBy(program, path, source, archive, signal)
}

async function unpackedBy (
  program: string, path: string, source: Readable, archive: NodeJS.WritableStream, signal: AbortSignal
): Promise<void> {
  const child = spawn(program, ['-dc'], { stdio: ['pipe', 'pipe', 'pipe'], signal })
  const started = once(child, 'spawn').catch((error: NodeJS.ErrnoException) => {
    throw error.code === 'ENOENT' ? usageFailure(`${path} is compressed with ${program}, which is not installed`) : error
  })
  await started
  child.on('error', () => {})
  let complaint = ''
  child.stderr.on('data', (chunk: Buffer) => { complaint = (complaint + chunk.toString()).slice(0, 300) })
  const ended = once(child, 'close')
  try {
    const fed = pipeline(source, child.stdin).catch(() => undefined)
    const through = new PassThrough()
    await Promise.all([pipeline(child.stdout, through, archive, { signal }), fed])
    const [code] = await ended as [number | null]
    if (code !== 0) throw new Error(complaint.trim() || `${program} ended with ${String(code)}`)
  } finally {
    child.kill()
  }
}

async function firstBytes (path: string): Promise<Buffer> {
  const file = await open(path, 'r')
  try {
    const buffer = Buffer.alloc(8)
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}
