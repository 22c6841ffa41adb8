import { PassThrough, type Duplex } from 'node:stream'
import type Docker from 'dockerode'
import type { ProgramPipes } from '../../contract/provider/engine-runtime.js'

/** The standard streams of a container that was created for it. Nothing is missed when it is started afterwards. */
export async function attachContainer (docker: Docker, id: string, signal: AbortSignal): Promise<ProgramPipes> {
  const container = docker.getContainer(id)
  const stream = await container.attach({
    stream: true, stdin: true, stdout: true, stderr: true, hijack: true, abortSignal: signal
  } as Docker.ContainerAttachOptions) as Duplex
  const stdout = new PassThrough()
  const stderr = new PassThrough()
  // demuxStream forgets to end what it writes to
  const end = (): void => {
    stdout.end()
    stderr.end()
  }
  stream.once('end', end).once('close', end).on('error', () => end())
  demultiplex(stream, stdout, stderr)
  return { stdin: stream, stdout, stderr, pid: null }
}

/** Frames of one byte stream number, three zero bytes and a big-endian length, cut anywhere. Holds no whole frame. */
function demultiplex (stream: Duplex, stdout: PassThrough, stderr: PassThrough): void {
  let header = Buffer.alloc(0)
  let left = 0
  let target = stdout
  stream.on('data', (chunk: Buffer) => {
    let rest = chunk
    while (rest.length > 0) {
      if (left === 0) {
        const missing = 8 - header.length
        header = Buffer.concat([header, rest.subarray(0, missing)])
        rest = rest.subarray(missing)
        if (header.length < 8) return
        target = header[0] === 2 ? stderr : stdout
        left = header.readUInt32BE(4)
        header = Buffer.alloc(0)
        continue
      }
      const part = rest.subarray(0, left)
      left -= part.length
      rest = rest.subarray(part.length)
      if (target.writable && !target.write(part)) {
        stream.pause()
        target.once('drain', () => stream.resume())
      }
    }
  })
}
