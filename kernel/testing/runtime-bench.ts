import { randomBytes } from 'node:crypto'
import { request } from 'undici'
import type { EngineAddress } from '../contract/index.js'
import {
  LABEL_INSTANCE, LABEL_SLOT, type ContainerRuntime, type EngineExit, type EngineSpec
} from '../contract/provider/engine-runtime.js'
import { claims, type Claims } from './claims.js'
import type { EngineWish } from './tiny-engine.js'

/** Seconds that a stop gives an engine. */
export const STOP_S = 5

/** Never aborts. */
export const quiet: AbortSignal = new AbortController().signal

/** A driver under test with engines of its own. */
export interface Bench {
  readonly runtime: ContainerRuntime
  readonly instance: string
  readonly exits: EngineExit[]
  readonly spec: (wish: EngineWish) => EngineSpec
  /** An unused one. */
  readonly freePort: () => Promise<number>
  make (wish?: Partial<EngineWish>): Promise<string>
  /** Makes, starts and waits until it answers. */
  run (wish?: Partial<EngineWish>): Promise<{ id: string, address: EngineAddress }>
  /** As a restarted gateway: closes the driver and opens it again. */
  reopen (): Promise<ContainerRuntime>
}

export interface BenchSubject {
  readonly open: () => Promise<ContainerRuntime>
  readonly spec: (wish: EngineWish) => EngineSpec
  readonly port: () => Promise<number>
}

export interface BenchCheck {
  readonly name: string
  readonly body: (t: Claims, bench: Bench) => Promise<void>
}

export function check (name: string, body: BenchCheck['body']): BenchCheck {
  return { name, body }
}

/** Throws what does not hold, and where engines are left behind. */
export async function runOnBench ({ body }: BenchCheck, { open, spec, port }: BenchSubject): Promise<void> {
  const instance = uniqueName('test')
  const exits: EngineExit[] = []
  let runtime = await open()
  runtime.onExit(instance, exit => { exits.push(exit) })
  const make = async (wish: Partial<EngineWish> = {}): Promise<string> => await runtime.create(spec({
    name: uniqueName('svc-test'), port: await port(), env: {}, ...wish,
    labels: { [LABEL_INSTANCE]: instance, [LABEL_SLOT]: 'one', ...wish.labels }
  }), quiet)
  const bench: Bench = {
    get runtime () { return runtime },
    instance,
    exits,
    spec,
    freePort: port,
    make,
    run: async wish => {
      const id = await make(wish)
      await runtime.start(id, quiet)
      return { id, address: await answering(runtime, id) }
    },
    reopen: async () => {
      await runtime.close()
      runtime = await open()
      runtime.onExit(instance, exit => { exits.push(exit) })
      return runtime
    }
  }
  try {
    await body(claims, bench)
  } finally {
    for (const { id } of await runtime.list({ [LABEL_INSTANCE]: instance })) await runtime.remove(id)
    const left = await runtime.list({ [LABEL_INSTANCE]: instance })
    await runtime.close()
    claims.same(left.map(({ name }) => name), [], 'no engine is left behind')
  }
}

export async function answering (runtime: ContainerRuntime, id: string): Promise<EngineAddress> {
  return await eventually('the engine answers', async () => {
    const address = (await runtime.inspect(id))?.address
    if (address === undefined || address === null) throw new Error('it has no address')
    await get(address, '/env')
    return address
  })
}

export async function get (address: EngineAddress, path: string): Promise<unknown> {
  // not the fetch of Node 20: when docker-proxy closes a fresh connection, that waits for ever (undici 6.24)
  const { body } = await request(`http://${address.host}:${address.port}${path}`, { signal: AbortSignal.timeout(120_000), reset: true })
  return await body.json()
}

export function uniqueName (prefix: string): string {
  return `${prefix}-${randomBytes(4).toString('hex')}`
}

/** Polls a condition, for at most `withinMs`; the error of the last try explains a failure. */
export async function eventually<T> (what: string, attempt: () => Promise<T> | T, withinMs = 120_000): Promise<NonNullable<T>> {
  const deadline = performance.now() + withinMs
  for (;;) {
    try {
      const result = await attempt()
      if (result !== false && result !== null && result !== undefined) return result as NonNullable<T>
      throw new Error('not yet')
    } catch (error) {
      if (performance.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms`, { cause: error })
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  }
}

/** Rejects when `promise` takes longer: a hang becomes a failure that names what hung. */
export async function within<T> (ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not within ${ms} ms`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

export async function collect (lines: AsyncIterable<string>): Promise<string[]> {
  const all: string[] = []
  for await (const line of lines) all.push(line)
  return all
}
