import { Readable } from 'node:stream'
import type { LogOptions } from '../../contract/provider/engine-runtime.js'
import type { DockerEngine } from './docker-connect.js'
import { containerGone, engineError, saysGone } from './docker-errors.js'
import { createLineSplitter, type LineSplitter } from '../../contract/text/line-splitter.js'
import { linkedAbort } from '../../async/waiting.js'

/** A container's output as `ContainerRuntime.logs` promises it. Reads from the socket only as fast as it is read. */
export async function* containerLogs (engine: DockerEngine, id: string, options: LogOptions): AsyncIterable<string> {
  const { tail, follow, signal } = options
  if (signal.aborted) return
  const { controller, dispose } = linkedAbort(signal, engine.closing)
  const leaving = controller.signal
  try {
    const stream = await openLogs(engine, id, tail, follow, leaving)
    const leave = (): void => { stream.destroy() }
    leaving.addEventListener('abort', leave)
    try {
      const demultiplexer = createDemultiplexer()
      for await (const chunk of stream) {
        for (const line of demultiplexer.push(chunk as Buffer)) {
          if (leaving.aborted) return
          yield line
        }
      }
      yield* demultiplexer.end()
    } finally {
      leaving.removeEventListener('abort', leave)
      stream.destroy()
    }
  } catch (error) {
    if (leaving.aborted) return // that is how a follower leaves
    throw saysGone(error) ? containerGone(id, error) : engineError('reading logs', engine.endpoint.url, error)
  } finally {
    dispose()
  }
}

/** A follower gets a stream; without follow the answer is bounded by the rotation and comes whole. */
async function openLogs (
  engine: DockerEngine, id: string, tail: number, follow: boolean, signal: AbortSignal
): Promise<Readable> {
  const container = engine.docker.getContainer(id)
  const query = { stdout: true, stderr: true, tail }
  // no deadline here: a silent engine may keep even the headers back
  if (follow) return await container.logs({ ...query, follow: true, abortSignal: signal }) as Readable
  const whole = await engine.call('reading logs', async inner => {
    try {
      return await container.logs({ ...query, follow: false, abortSignal: inner })
    } catch (error) {
      throw saysGone(error) ? containerGone(id, error) : error
    }
  }, { signal })
  return Readable.from([whole])
}

/**
 * Takes stdout and stderr apart: frames of one byte stream number, three zero bytes and a big-endian length, cut
 * anywhere. Bytes that are no frame (a container with a terminal) are taken as they are. Holds one unfinished line
 * for each of the two and never a whole frame.
 */
export function createDemultiplexer (): LineSplitter {
  const splitters = [createLineSplitter(), createLineSplitter()]
  let header = Buffer.alloc(0)
  let left = 0
  let current = splitters[0]!
  let raw = false

  function* take (chunk: Buffer): Iterable<string> {
    let rest = chunk
    while (rest.length > 0) {
      if (raw || left > 0) {
        const part = raw ? rest : rest.subarray(0, left)
        if (!raw) left -= part.length
        yield* current.push(part)
        rest = rest.subarray(part.length)
        continue
      }
      const missing = 8 - header.length
      header = Buffer.concat([header, rest.subarray(0, missing)])
      rest = rest.subarray(missing)
      if (!looksLikeFrame(header)) {
        raw = true
        rest = Buffer.concat([header, rest])
      } else if (header.length === 8) {
        current = splitters[header[0] === 2 ? 1 : 0]!
        left = header.readUInt32BE(4)
        header = Buffer.alloc(0)
      }
    }
  }

  return {
    push: chunk => [...take(chunk)],
    end: () => splitters.flatMap(splitter => splitter.end())
  }
}

function looksLikeFrame (header: Buffer): boolean {
  return header[0]! <= 2 && header.subarray(1, 4).every(byte => byte === 0)
}
