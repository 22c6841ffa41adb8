import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { CHECKPOINTS } from '../../../plugins/providers/imagegen/image-gateway.js'
import { chatBody, sharedGpu } from '../../../plugins/providers/imagegen/shared-gpu.js'
import { oneFile } from '../../../one-file.js'
import { reservePorts } from '../../../ports.js'
import { processesOf, startDoomed, type DeathPoint, type DoomedGateway } from '../doomed-gateway.js'

const FIXTURE = fileURLToPath(new URL('../fixtures/doomed-gpu-gateway.js', import.meta.url))

export interface KillPoint extends DeathPoint {
  readonly type: 'gpu.mode' | 'slot.state'
  /** Mode that the next gateway finds on disk. */
  readonly left: 'inference' | 'generation'
}

const JSON_TYPE = { 'content-type': 'application/json' }

/** A home with a language model and an image engine on one GPU. Whatever runs for it ends with the test. */
async function gpuHome (t: Test): Promise<string> {
  const ports = await reservePorts(t)
  const home = await mkdtemp(join(tmpdir(), 'svc-kill-'))
  t.teardown(async () => {
    for (const { pid } of await enginesOf(home)) process.kill(pid, 'SIGKILL')
    await rm(home, { recursive: true, force: true, maxRetries: 5 })
  })
  const files = {
    ...sharedGpu(ports.end),
    'etc/svc/svc.toml': `[runtime]\ndriver = "process"\n[slots]\nautostart = false\n${ports.toml}`,
    ...Object.fromEntries(CHECKPOINTS.map(name => [`var/lib/svc/comfyui/models/checkpoints/${name}`, '']))
  }
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(home, path)), { recursive: true })
    await writeFile(join(home, path), content)
  }
  return home
}

interface EngineProcess {
  readonly pid: number
  readonly slot: 'chat' | 'img'
}

/** Engines that run for a home, by their command lines. */
async function enginesOf (home: string): Promise<readonly EngineProcess[]> {
  return (await processesOf(home)).flatMap(({ pid, args }): EngineProcess[] => {
    if (args.includes('/chat-engine.js')) return [{ pid, slot: 'chat' }]
    return args.includes('/fake/main.js') ? [{ pid, slot: 'img' }] : []
  })
}

async function runningIn (home: string): Promise<readonly string[]> {
  return (await enginesOf(home)).map(({ slot }) => slot).sort()
}

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into answers of every shape
async function call (gateway: DoomedGateway, path: string, body?: string): Promise<{ readonly status: number, json: any }> {
  const answer = await fetch(`${gateway.url}${path}`, body === undefined ? {} : { method: 'POST', headers: JSON_TYPE, body })
  return { status: answer.status, json: await answer.json() }
}

function chat (gateway: DoomedGateway): Promise<{ readonly status: number }> {
  return call(gateway, '/v1/chat/completions', chatBody())
}

function image (gateway: DoomedGateway): Promise<{ readonly status: number }> {
  return call(gateway, '/v1/images/generations', JSON.stringify({ model: 'sdxl-turbo', prompt: 'x', size: '64x64' }))
}

function switchTo (gateway: DoomedGateway, mode: 'inference' | 'generation'): Promise<{ readonly status: number }> {
  return call(gateway, '/api/comfyui/switchover', JSON.stringify({ mode, force: true }))
}

interface Standing {
  readonly mode: string
  readonly arbiter: { readonly saved_llm_slots: readonly string[] }
}

/** The status once the GPU belongs to one side. */
async function standing (gateway: DoomedGateway): Promise<Standing> {
  for (const end = performance.now() + 120_000; ;) {
    const { json } = await call(gateway, '/api/comfyui/status')
    const status = json as Standing & { switchover: { active: boolean } }
    if (!status.switchover.active) return status
    if (performance.now() > end) throw new Error(`the GPU never settled: ${JSON.stringify(json)}`)
    await new Promise(resolve => { setTimeout(resolve, 100) })
  }
}

async function onDisk (home: string): Promise<{ readonly mode: string, readonly saved_llm_slots: readonly string[] }> {
  const text = await readFile(join(home, 'var/lib/svc/gpu_arbiter.json'), 'utf8').catch(() => null)
  return text === null ? { mode: 'llm', saved_llm_slots: [] } : JSON.parse(text) as { mode: string, saved_llm_slots: string[] }
}

/** On its way into image mode, or back out of it. */
export type Way = 'into' | 'back'

/** The gateway that dies, for all that are started of it. */
export function doomedGateway (): Promise<string> {
  return oneFile(FIXTURE)
}

/**
 * Kills a gateway at a point of its way, starts it again, and checks that nothing of it is left in between. At each of the
 * points in turn: the gateway that has cleared up after one death dies the next one.
 * @param program of `doomedGateway`
 */
export async function killedAtEach (t: Test, program: string, way: Way, points: readonly KillPoint[]): Promise<void> {
  const home = await gpuHome(t)
  let gateway = await startDoomed(t, program, home)
  for (const point of points) {
    await t.test(`killed at ${point.type} ${point.message}`, async test => {
      await dies(test, gateway, home, way, point)
      gateway = await startDoomed(t, program, home)
      await clearsUp(test, gateway, home, point)
    })
  }
  await gateway.kill('SIGTERM')
  t.strictSame(await runningIn(home), [], 'nothing is left')
}

async function dies (t: Test, gateway: DoomedGateway, home: string, way: Way, point: KillPoint): Promise<void> {
  await gateway.arm(point)
  t.equal((await chat(gateway)).status, 200)
  const left = image(gateway).catch(() => ({ status: 0 }))
  if (way === 'back') {
    t.equal((await left).status, 200)
    await switchTo(gateway, 'inference').catch(() => undefined)
  }
  const late = setTimeout(() => { t.fail('it never came to that point') }, 120_000)
  await gateway.gone
  clearTimeout(late)
  await left
  t.equal((await onDisk(home)).mode, point.left === 'generation' ? 'img' : 'llm', 'what is on disk says where it goes')
}

async function clearsUp (t: Test, gateway: DoomedGateway, home: string, point: KillPoint): Promise<void> {
  const now = await standing(gateway)
  t.equal(now.mode, point.left, 'the next gateway ends there')
  const engines = await runningIn(home)
  t.strictSame(engines.filter(slot => slot === (now.mode === 'generation' ? 'chat' : 'img')), [], 'no engine of the other side')
  t.ok(engines.length <= 1, `none is orphaned: ${engines.join(', ')}`)
  t.equal((await onDisk(home)).mode, now.mode === 'generation' ? 'img' : 'llm')

  if (now.mode === 'generation') t.equal((await chat(gateway)).status, 503, 'language models wait for their turn')
  else t.equal((await chat(gateway)).status, 200)
  t.equal((await image(gateway)).status, 200, 'an image is made')
  t.strictSame([(await standing(gateway)).mode, await runningIn(home)], ['generation', ['img']])
  t.equal((await switchTo(gateway, 'inference')).status, 202)
  t.match(await standing(gateway), { mode: 'inference', arbiter: { saved_llm_slots: { length: 0 } } })
  t.equal((await chat(gateway)).status, 200, 'and the language model is back')
  t.strictSame(await runningIn(home), ['chat'])
  t.match(await onDisk(home), { mode: 'llm' })
}
