import type { Readable } from 'node:stream'
import { svcError, type SvcError } from '../../contract/index.js'
import type { PullProgress } from '../../contract/provider/engine-runtime.js'
import type { DockerEngine } from './docker-connect.js'
import { engineError, engineMessage, statusOf } from './docker-errors.js'
import { parseImageRef, pinOf, usableReference } from '../image/image-ref.js'
import { jsonLines } from './json-lines.js'
import { pullErrorOf, PullTally } from '../image/pull-progress.js'
import { abortable, linkedAbort } from '../../async/waiting.js'

/** Whether the image is there, and has the digest when one is pinned. */
export async function imagePresent (
  engine: DockerEngine, image: string, digest: string | null, signal: AbortSignal
): Promise<boolean> {
  const found = await repoDigests(engine, usableReference(image, digest), signal)
  const pin = pinOf(image, digest)
  return found !== null && (pin === null || hasDigest(found, pin))
}

/** As `ContainerRuntime.pull` says. No credentials are sent: what is not public must be loaded by other means. */
export async function pullImage (
  engine: DockerEngine, image: string, digest: string | null, onProgress: (progress: PullProgress) => void, signal: AbortSignal
): Promise<void> {
  signal.throwIfAborted()
  const reference = usableReference(image, digest)
  const { controller, dispose } = linkedAbort(signal, engine.closing)
  try {
    const refusal = await abortable(fetchImage(engine, reference, onProgress, controller.signal), controller.signal)
    if (refusal !== null) throw pullRefused(engine, reference, refusal)
  } catch (error) {
    signal.throwIfAborted()
    throw statusOf(error) === null ? engineError(`pulling ${reference}`, engine.endpoint.url, error)
      : pullRefused(engine, reference, engineMessage(error), error)
  } finally {
    dispose()
  }
  const pin = pinOf(image, digest)
  if (pin === null) return
  await verify(engine, reference, pin, signal)
  await keepTag(engine, image, reference, signal)
}

/** Null, or why the engine gave up after it had answered with status 200. */
async function fetchImage (
  engine: DockerEngine, reference: string, onProgress: (progress: PullProgress) => void, signal: AbortSignal
): Promise<string | null> {
  const { repository, tag, digest } = parseImageRef(reference)
  const stream = await engine.docker.createImage({
    fromImage: repository, tag: digest ?? tag ?? '', abortSignal: signal
  } as object) as unknown as Readable
  // the connection is what keeps the pull going: without it the engine stops
  const stop = (): void => { stream.destroy() }
  signal.addEventListener('abort', stop)
  if (signal.aborted) stop()
  const tally = new PullTally(engine.facts.kind)
  try {
    for await (const line of jsonLines(stream)) {
      const problem = pullErrorOf(line)
      if (problem !== null) return problem
      const progress = tally.add(line)
      if (progress !== null) onProgress(progress)
    }
    return null
  } finally {
    signal.removeEventListener('abort', stop)
    stream.destroy()
  }
}

/** In the engine's own words. */
function pullRefused (engine: DockerEngine, reference: string, message: string, cause?: unknown): SvcError {
  if (/no space left on device/i.test(message)) return engineError(`pulling ${reference}`, engine.endpoint.url, new Error(message))
  return svcError('runtime.image_missing', `image ${reference} cannot be pulled: ${message}; ${adviceFor(message)}`,
    { details: { image: reference }, cause, heals: isPassing(message) })
}

/** Whether the engine's words are about the way to the registry, and not about the image. */
function isPassing (message: string): boolean {
  return /connection (refused|reset)|no such host|time-?out|network is unreachable|no route to host|temporary failure|EOF|toomanyrequests|too many requests|rate limit|50[0234]|(service|server) (is )?(temporarily )?unavailable/i.test(message)
}

function adviceFor (message: string): string {
  if (/unauthorized|denied|authentication required/i.test(message)) {
    return 'it may not exist or may need a login: check the name, or load it into the container engine yourself'
  }
  if (/manifest unknown|not found|name unknown|no such image/i.test(message)) return 'check the name, tag and digest'
  if (/connection refused|no such host|timeout|tls|network is unreachable|i\/o timeout/i.test(message)) {
    return 'check that the registry can be reached from this machine'
  }
  return 'try the same pull with the command line of the container engine'
}

async function verify (engine: DockerEngine, reference: string, pin: string, signal: AbortSignal): Promise<void> {
  const digests = await repoDigests(engine, reference, signal) ?? []
  if (hasDigest(digests, pin)) return
  throw svcError('runtime.digest_mismatch',
    `image ${reference} was pulled and has ${digests.length === 0 ? 'no digest' : digests.join(', ')} instead of ${pin}; do not use it, and check the registry or the pin in manifest.json`,
    { details: { image: reference, expected: pin, found: digests } })
}

/**
 * Gives a pinned image its tag as well, so that people see what it is and a prune of untagged images spares it.
 * A tag that is there already is never moved.
 */
async function keepTag (engine: DockerEngine, image: string, reference: string, signal: AbortSignal): Promise<void> {
  const { repository, tag } = parseImageRef(image)
  if (tag === null || await repoDigests(engine, `${repository}:${tag}`, signal) !== null) return
  await engine.call(`tagging ${reference}`, inner =>
    engine.docker.getImage(reference).tag({ repo: repository, tag, abortSignal: inner }), { signal })
}

/** Null when there is no such image. */
function repoDigests (engine: DockerEngine, reference: string, signal: AbortSignal): Promise<readonly string[] | null> {
  return engine.call(`looking up image ${reference}`, async inner => {
    try {
      return (await engine.docker.getImage(reference).inspect({ abortSignal: inner } as object)).RepoDigests ?? []
    } catch (error) {
      if (statusOf(error) === 404) return null
      throw error
    }
  }, { signal })
}

function hasDigest (repoDigests: readonly string[], pin: string): boolean {
  return repoDigests.some(entry => entry.endsWith(`@${pin}`))
}
