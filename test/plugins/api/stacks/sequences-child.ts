import assert from 'node:assert'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import * as fsPromises from 'node:fs/promises'
import { join } from 'node:path'
import {
  core, definePlugin, deviceClassOf, devices, gpuBackendOf, isSvcError, type AnyPlugin, type NamedProfile,
  type NamedSlotConfig
} from '../../../../kernel/contract/index.js'
import type { FileOps } from '../../../../kernel/config/files/atomic-file.js'
import { createTestGateway, FakeEngineRuntime } from '../../../../kernel/testing/index.js'
import { overlayRef } from '../../../../plugins/api/capabilities/ref.js'
import { capabilityChildren } from '../../../../plugins/services/capabilities/ref.js'
import { stackCatalog, type Stack } from '../../../../plugins/services/stack-catalog/ref.js'
import { readPointer, stackState } from '../../../../plugins/api/stacks/pointer.js'
import type { StackServices } from '../../../../plugins/api/stacks/stack-api.js'
import { StackRunner } from '../../../../plugins/api/stacks/stack-runner.js'
import { libraryRef } from '../../../../plugins/services/library/ref.js'
import fc from '../../../property.js'
import { apiPlugins } from '../support.js'
import { engines } from '../capabilities/host.js'
import { files, PORT_POOL } from './host.js'

/**
 * Writes slots, profiles, capabilities and stacks in any order, and looks after every write. Argument: how many
 * sequences. Sends how often what happened; ends with 1 and the shortest counterexample.
 */
const runs = Number(process.argv[2])

// what is on disk after a power failure is another test's question
const quickOps: FileOps = {
  ...fsPromises,
  open: async (...args: Parameters<FileOps['open']>) => {
    const file = await fsPromises.open(...args)
    file.sync = () => Promise.resolve()
    return file
  }
}

const pick = <T>(...values: readonly T[]) => fc.constantFrom(...values)
const slotName = pick('agent', 'old', 'a', 'b', 'embed')
const model = pick('chatty', 'coder', 'small', 'picky', 'nomic', 'npu-only', 'nowhere')
const device = pick(...devices, null)
const profile = pick('mine', 'own', 'rocm', 'vulkan', 'cpu-llm', 'npu-rt', 'none', null)
const provider = pick('llm-server', 'npu-rt', null)
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 2 })

const slotBody = fc.record({
  device: maybe(device), profile: maybe(profile), provider: maybe(provider), model: fc.record({ default: model }),
  type: maybe(pick('llm', 'embedding')), default: maybe(fc.boolean()), enabled: maybe(fc.boolean())
})
const profileBody = fc.record({ image: pick('x', 'y'), device_class: pick('gpu', 'cpu', 'npu'), backend: pick('rocm', 'vulkan', null), flags: pick('', '-fa on') })
const capability = fc.record({
  child: pick(...capabilityChildren), device, model: pick('nomic', 'judge', 'whisper', 'kokoro', 'nowhere', null), enabled: fc.boolean()
})
const row = fc.record({
  slot: slotName, model: fc.option(model, { freq: 5 }), device, profile, provider, vision: fc.boolean(),
  mtp: pick(true, false, null), role: pick('utility', null), server_extra_args: pick('-fa on', null), capabilities: fc.uniqueArray(capability, { maxLength: 2, selector: ({ child }) => child })
})
const stackBody = fc.record({
  name: pick('One', 'Two'),
  slots: fc.uniqueArray(row, { minLength: 1, maxLength: 3, selector: ({ slot }) => slot }),
  profiles: pick({}, { own: { image: 'z', device_class: 'cpu' }, mine: { image: 'z', device_class: 'cpu' } })
})
const slug = pick('one', 'two', 'saber')
const step = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: pick('slot.create' as const), name: slotName, body: slotBody }) },
  { weight: 3, arbitrary: fc.record({ kind: pick('slot.update' as const), name: slotName, body: slotBody }) },
  { weight: 1, arbitrary: fc.record({ kind: pick('slot.delete' as const), name: slotName }) },
  { weight: 1, arbitrary: fc.record({ kind: pick('profile.put' as const), name: pick('mine', 'own'), body: profileBody }) },
  { weight: 1, arbitrary: fc.record({ kind: pick('profile.delete' as const), name: pick('mine', 'own', 'rocm') }) },
  { weight: 2, arbitrary: fc.record({ kind: pick('capability' as const), wanted: capability }) },
  { weight: 1, arbitrary: fc.record({ kind: pick('stack.put' as const), slug, body: stackBody }) },
  { weight: 4, arbitrary: fc.record({ kind: pick('stack.apply' as const), slug: pick('one', 'two', 'saber', 'pi'), body: fc.option(stackBody, { freq: 5 }) }) }
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

async function sequences (): Promise<Record<string, number>> {
  let services: StackServices | null = null
  const spy = definePlugin({
    name: 'spy', kind: 'service', apiVersion: 1,
    requires: {
      activity: core.activity, clock: core.clock, config: core.config, events: core.events, info: core.info, library: libraryRef,
      models: core.models, overlay: overlayRef, providers: core.providers, slots: core.slots
    },
    register (ctx) { services = ctx.services }
  }) as AnyPlugin
  const runtime = new FakeEngineRuntime()
  const base = { 'etc/svc/svc.toml': `[slots]\nautostart = false\n${PORT_POOL}`, ...files }
  const gateway = await createTestGateway({
    runtime, plugins: [...apiPlugins, ...engines, spy], files: base, fileOps: quickOps, deviceNodes: []
  })
  const { config, overlay, slots } = services as unknown as StackServices
  // what runs is the subject of other tests; here only the configuration matters
  const still = new Proxy(slots, {
    get: (target, key) => key === 'converge' ? () => Promise.resolve('skipped') : bound(target, key)
  })
  const resting = new Proxy(overlay, { get: (target, key) => key === 'converge' ? () => Promise.resolve() : bound(target, key) })
  const quiet = { debug () {}, info () {}, warn () {}, error () {} }
  const runner = new StackRunner({ ...services as unknown as StackServices, slots: still, overlay: resting }, quiet)
  const app = gateway.gateway.app()
  const seen = { applied: 0, refused: 0, written: 0 }

  const call = async (method: 'POST' | 'PUT' | 'DELETE', url: string, payload?: object): Promise<void> => {
    const { statusCode, body } = await app.inject({ method, url, ...(payload === undefined ? {} : { payload }) })
    if (statusCode >= 500) throw new Error(`${method} ${url}: ${statusCode} ${body}`)
    // rows that contradict themselves are refused when they are written, the others by the apply
    if (statusCode < 300) seen.written++
    else if (url.startsWith('/api/stacks')) seen.refused++
  }
  const count = async (work: Promise<unknown>): Promise<void> => {
    const outcome = await outcomeOf(work)
    if (typeof outcome !== 'object' || outcome === null || !('code' in outcome)) seen.written++
  }
  const putStack = async (name: string, body: object): Promise<void> => {
    await call(stackCatalog.of(config.snapshot).has(name) ? 'PUT' : 'POST', stackCatalog.of(config.snapshot).has(name) ? `/api/stacks/${name}` : '/api/stacks',
      stackCatalog.of(config.snapshot).has(name) ? body : { slug: name, stack: body })
  }

  async function apply (name: string): Promise<void> {
    const before = tree(gateway.home)
    const slotsBefore = config.snapshot.slots
    const predicted = await outcomeOf(runner.preview(name))
    same(tree(gateway.home), before, 'a dry run writes nothing')
    const done = await outcomeOf(runner.apply(name, true, () => {}))
    if ('code' in predicted || 'code' in done) {
      seen.refused++
      same(done, predicted, 'a dry run refuses what the apply refuses')
      return same(tree(gateway.home), before, 'what is refused changes nothing')
    }
    seen.applied++
    same(done.plan, predicted.plan, 'the apply did what the dry run said')
    const { creates, changes } = done.plan
    const now = config.snapshot.slots
    same([...now.keys()].sort(), [...new Set([...slotsBefore.keys(), ...creates])].sort(), 'slots that were to be made are there')
    for (const [slot, value] of now) {
      const change = changes.find(other => other.slot === slot)
      if (change === undefined) same(value, slotsBefore.get(slot), `${slot} was not to change`)
      else same([change.before_model, change.after_model], [slotsBefore.get(slot)?.model.default ?? null, value.model.default], `${slot} changed as told`)
    }
    for (const { slot, model } of (stackCatalog.of(config.snapshot).get(name) as Stack).slots) {
      if (model !== null) same([now.get(slot)!.model.default, now.get(slot)!.enabled], [model, true], `${slot} is as its row says`)
    }
    const state = stackState(await readPointer(config.paths), config.snapshot)
    same(state, { active: name, drift: done.plan.refused.length === 0 ? 'clean' : 'degraded' }, 'and counts as such')
  }

  async function take (next: Step): Promise<void> {
    switch (next.kind) {
      case 'slot.create': return await count(slots.create(next.name, present(next.body)))
      case 'slot.update': return await count(slots.update(next.name, next.body))
      case 'slot.delete': return await count(slots.delete(next.name, { force: true }))
      case 'profile.put': return config.snapshot.profiles.has(next.name)
        ? await call('PUT', `/api/profiles/${next.name}`, next.body) : await call('POST', '/api/profiles', { name: next.name, ...next.body })
      case 'profile.delete': return await call('DELETE', `/api/profiles/${next.name}`)
      case 'stack.put': return await putStack(next.slug, next.body)
      case 'stack.apply':
        if (next.body !== null) await putStack(next.slug, next.body)
        return stackCatalog.of(config.snapshot).has(next.slug) ? await apply(next.slug) : undefined
      case 'capability': {
        const { child, ...patch } = next.wanted
        return await count(slots.change(draft => overlay.select(draft, child, patch)))
      }
    }
  }

  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async steps => {
    reset(gateway.home, base)
    await config.reload()
    for (const next of steps) {
      await take(next)
      same(brokenRules(config.snapshot.slots, config.snapshot.profiles), [], `after ${next.kind}`)
      same(slots.check([...config.snapshot.slots.values()]), [], `the guards after ${next.kind}`)
    }
    const held = config.snapshot
    const read = await config.reload()
    same(read.diagnostics, [], 'every file loads')
    same([read.slots, read.profiles, read.files], [held.slots, held.profiles, held.files], 'to what was in force')
    same(Object.keys(tree(gateway.home)).filter(name => /\/\./.test(name)), [], 'and nothing lies about')
  }), { numRuns: runs })
  await gateway.close()
  return seen
}

/** What must hold whoever wrote last, found without the code that guards it. */
function brokenRules (
  slots: ReadonlyMap<string, NamedSlotConfig>, profiles: ReadonlyMap<string, Pick<NamedProfile, 'backend' | 'device_class'>>
): string[] {
  const all = [...slots.values()]
  const broken: string[] = []
  if (all.filter(slot => slot.enabled && slot.device === 'npu' && slot.type === 'llm').length > 1) broken.push('two llm slots on the NPU')
  for (const slot of all) {
    if (slot.default && all.some(other => other !== slot && other.default && other.type === slot.type)) broken.push(`two default ${slot.type} slots`)
    if (all.some(other => other !== slot && slot.port !== undefined && other.port === slot.port)) broken.push(`two slots on port ${String(slot.port)}`)
    const used = slot.profile === null ? undefined : profiles.get(slot.profile)
    if (slot.profile !== null && used === undefined) broken.push(`${slot.name} names no profile`)
    if (used === undefined || slot.device === undefined) continue
    const isCoherent = used.backend === null
      ? used.device_class === deviceClassOf(slot.device)
      : used.backend === gpuBackendOf(slot.device)
    if (!isCoherent && used.device_class !== 'img') broken.push(`${slot.name} is on ${slot.device} with profile ${slot.profile}`)
  }
  return broken
}

async function outcomeOf<T> (work: Promise<T>): Promise<T | { readonly code: string, readonly message: string }> {
  try {
    return await work
  } catch (error) {
    if (!isSvcError(error)) throw error
    return { code: error.code, message: error.message }
  }
}

function bound (target: object, key: string | symbol): unknown {
  const value = Reflect.get(target, key, target) as unknown
  return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
}

/** Creating knows no null for what is left open. */
function present (body: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))
}

function same (found: unknown, wanted: unknown, what: string): void {
  assert.deepStrictEqual(found, wanted, what)
}

function tree (home: string): Record<string, string> {
  const folders = ['etc/svc', 'etc/svc/slots', 'var/lib/svc']
  const names = folders.flatMap(folder => readdirSync(join(home, folder), { withFileTypes: true })
    .filter(entry => entry.isFile() && /\.(toml|json|tmp|journal.*)$/.test(entry.name)).map(({ name }) => `${folder}/${name}`))
  return Object.fromEntries(names.map(name => [name, readFileSync(join(home, name), 'utf8')]))
}

function reset (home: string, base: Readonly<Record<string, string>>): void {
  const found = tree(home)
  for (const name of Object.keys(found)) if (!Object.hasOwn(base, name)) rmSync(join(home, name))
  for (const [name, content] of Object.entries(base)) {
    // the registry is nobody's to change here
    if (!name.startsWith('var/') && found[name] !== content) writeFileSync(join(home, name), content)
  }
}

process.send!(await sequences())
process.disconnect()
