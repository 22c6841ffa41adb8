import assert from 'node:assert/strict'
import {
  ENV_NAME_PATTERN, hardwareSchema, isProvider, modelRowSchema, slotConfigSchema, surfaceNames, type EngineProvider,
  type LaunchInput, type LaunchSpecInput, type SlotConfig, type SlotConfigInput
} from '../contract/index.js'
import { planArgv, planLaunch } from '../slots/launch-plan.js'

/**
 * One rule. Give it to the test runner of your choice:
 * `for (const { name, run } of providerConformance(provider)) test(name, run)`.
 */
export interface ConformanceCheck {
  readonly name: string
  readonly run: () => void | Promise<void>
}

export interface ProviderConformanceOptions {
  /** A slot the provider can run, besides its name: type, device, options. */
  readonly slot?: SlotConfigInput
  /** Answers of the engine's health path that must count as well, and as not yet well. */
  readonly healthy?: { readonly status: number, readonly json?: unknown }
  readonly loading?: { readonly status: number, readonly json?: unknown }
  /** For an engine with models of its own: one of them, as people write it. */
  readonly engineModel?: string
}

const PORT = 7654

/** What every provider must keep to, checked without starting an engine (DESIGN 3). */
export function providerConformance (
  provider: EngineProvider, options: ProviderConformanceOptions = {}
): readonly ConformanceCheck[] {
  const input = (form: 'container' | 'process'): LaunchInput => launchInput(provider, form, options)
  return [
    {
      name: 'is made by defineProvider and cannot be changed afterwards',
      run: () => {
        assert.ok(isProvider(provider))
        assert.ok(Object.isFrozen(provider))
      }
    },
    {
      name: 'serves known surfaces on absolute paths',
      run: () => {
        for (const [name, surface] of Object.entries(provider.surfaces)) {
          assert.ok((surfaceNames as readonly string[]).includes(name), `surface ${name} is not one of the contract`)
          assert.match(surface.path, /^\//)
        }
      }
    },
    {
      name: 'plans the same launch from the same input and changes nothing it is given',
      run: () => {
        for (const form of ['container', 'process'] as const) {
          const frozen = deepFreeze(input(form))
          assert.deepEqual(plan(provider, frozen), plan(provider, deepFreeze(input(form))))
        }
      }
    },
    {
      name: 'gives a container words, absolute mounts and valid variables',
      run: () => {
        const spec = provider.containerSpec(specInput(provider, input('container')))
        assert.ok(spec.command.every(word => typeof word === 'string'), 'every word of the command is a string')
        for (const mount of spec.mounts ?? []) {
          assert.match(mount.source, /^\//)
          assert.match(mount.target, /^\//)
        }
        for (const key of Object.keys(spec.env ?? {})) assert.match(key, ENV_NAME_PATTERN)
        assertNamesPort([...spec.command, ...Object.values(spec.env ?? {})])
      }
    },
    {
      name: 'listens on the port and the address it is given when it runs as a process',
      run: () => {
        const candidates = provider.processSpec?.(specInput(provider, input('process'))) ?? []
        for (const candidate of candidates) {
          assert.notEqual(candidate.label, '', 'a candidate has a label')
          const words = [...candidate.args, ...Object.values(candidate.env ?? {})]
          assertNamesPort(words)
          assert.ok(words.some(word => word.includes('127.0.0.1')), `${candidate.label} is told the address to listen on`)
        }
      }
    },
    {
      name: 'judges health without throwing, whatever the engine answers',
      run: () => {
        const verdict = provider.health.verdict
        if (verdict === undefined) return
        for (const json of [null, 1, 'text', [], {}, { status: 'ok' }]) {
          for (const status of [200, 404, 500, 503]) assert.ok(['ok', 'loading', 'failed'].includes(verdict({ status, json })))
        }
        assert.notEqual(verdict({ status: 500, json: null }), 'ok', 'an error is not well')
        const { healthy, loading } = options
        if (healthy !== undefined) assert.equal(verdict({ status: healthy.status, json: healthy.json ?? null }), 'ok')
        if (loading !== undefined) assert.equal(verdict({ status: loading.status, json: loading.json ?? null }), 'loading')
      }
    },
    {
      name: 'spells each of its own models in one way',
      run: async () => {
        const { models } = provider
        if (models === undefined) return
        const known = await models.list('/nowhere')
        assert.ok(known.every(({ installed }) => !installed), 'a store that is not there is empty')
        assert.equal(models.canonical(''), null)
        const named = options.engineModel === undefined ? [] : [models.canonical(options.engineModel)!]
        for (const id of [...known.map(model => model.id), ...named]) {
          assert.equal(models.canonical(id), id)
          for (const alias of models.aliases?.(id) ?? []) assert.equal(models.canonical(alias), id, `${alias} is another name of ${id}`)
        }
      }
    },
    {
      name: 'takes a slot without options of its own',
      run: () => {
        const checked = provider.slotOptions?.safeParse({})
        assert.ok(checked === undefined || checked.success, 'slotOptions must have defaults for everything')
      }
    }
  ]
}

function plan (provider: EngineProvider, launch: LaunchInput): unknown {
  return planLaunch({
    launch,
    provider,
    mtp: false,
    access: { devices: [], cdiDevices: [], groups: [], securityOpts: [], env: {} },
    image: { ref: 'image', digest: null },
    publishHost: '127.0.0.1'
  })
}

function specInput (provider: EngineProvider, launch: LaunchInput): LaunchSpecInput {
  return { ...launch, argv: planArgv(provider, launch, false).argv }
}

function launchInput (
  provider: EngineProvider, form: 'container' | 'process', { slot = {}, engineModel }: ProviderConformanceOptions
): LaunchInput {
  const model = { ...modelRowSchema.parse({ path: '/models/test.gguf' }), id: 'test' }
  const own = { type: provider.slotTypes[0], device: provider.devices[0], provider: provider.name }
  const config = slotConfigSchema.parse({ ...own, ...slot })
  const options = provider.slotOptions?.parse(config.options) as SlotConfig['options'] | undefined
  return {
    slot: { ...config, options: options ?? config.options, name: 'conformance' },
    device: provider.devices[0]!,
    form,
    bindHost: form === 'container' ? '0.0.0.0' : '127.0.0.1',
    port: PORT,
    model: provider.takesModel ?? provider.needsModel ? model : null,
    ...provider.models === undefined
      ? {}
      : { engineModels: { id: engineModel === undefined ? null : provider.models.canonical(engineModel), store: '/store/models' } },
    profile: null,
    contextSize: 8192,
    chatTemplatePath: null,
    mmprojPath: null,
    modelRoots: ['/models'],
    hardware: hardwareSchema.parse({}),
    stateDir: '/var/lib/svc/slots/conformance'
  }
}

function assertNamesPort (words: readonly string[]): void {
  assert.ok(words.some(word => word.includes(String(PORT))), 'the engine is told its port')
}

function deepFreeze<T> (value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) deepFreeze(inner)
  }
  return value
}
