import assert from 'node:assert/strict'
import { z } from 'zod'
import {
  ENV_NAME_PATTERN, hostFeatures, isProvider, messageOf, surfaceNames, type EngineClient, type EngineProvider,
  type HealthReport, type HealthVerdict, type LaunchInput
} from '../contract/index.js'
import { defaultVerdict } from '../slots/life/watch/health.js'
import { furtherPorts, launchInput, plan, PORT, specInput, type ConformanceLaunch } from './conformance-launch.js'

/**
 * One rule. Give it to the test runner of your choice:
 * `for (const { name, run } of providerConformance(provider)) test(name, run)`.
 */
export interface ConformanceCheck {
  readonly name: string
  readonly run: () => void | Promise<void>
}

/** An answer of the engine's health path. */
export interface FedAnswer {
  readonly status: number
  /** The body when it is JSON. */
  readonly json?: unknown
}

export interface ProviderConformanceOptions extends ConformanceLaunch {
  /** Answers of the engine's health path that must count as well, and as not yet well. */
  readonly healthy?: FedAnswer
  readonly loading?: FedAnswer
}

const verdicts: readonly HealthVerdict[] = ['ok', 'loading', 'failed']

/** What every provider must keep to, checked without starting an engine. */
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
          const { slot, model } = input('process')
          const { path, fields = {} } = surface.form?.(slot, model?.id ?? null) ?? {}
          assert.match(path ?? '/', /^\//)
          for (const word of Object.entries(fields).flat()) assert.match(word, /^[\w.-]+$/, `surfaces.${name}.form gives plain words`)
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
      name: 'is told each further port that it names',
      run: () => {
        for (const form of ['container', 'process'] as const) {
          const spec = specInput(provider, input(form))
          const launches = form === 'container'
            ? [provider.containerSpec(spec)].map(({ command, env }) => ({ words: command, env }))
            : (provider.processSpec?.(spec) ?? []).map(({ args, env }) => ({ words: args, env }))
          for (const { words: given, env = {} } of launches) {
            const words = [...given, ...Object.values(env)]
            for (const [name, port] of Object.entries(spec.ports)) {
              assert.ok(words.some(word => word.includes(String(port))), `a ${form} is told its port '${name}': fed ports.${name} = ${port}`)
            }
          }
        }
      }
    },
    {
      name: 'judges health without throwing, whatever the engine answers',
      run: () => {
        for (const json of [null, 1, 'text', [], {}, { status: 'ok' }]) {
          for (const status of [200, 404, 500, 503]) judgeHealth(provider, { status, json })
        }
        assertVerdict(provider, { status: 500 }, ['loading', 'failed'])
        if (options.healthy !== undefined) assertVerdict(provider, options.healthy, ['ok'])
        if (options.loading !== undefined) assertVerdict(provider, options.loading, ['loading'])
      }
    },
    {
      name: 'sends its engine headers that HTTP can carry, and keeps its key off the command line',
      run: () => {
        for (const form of ['container', 'process'] as const) {
          const spec = specInput(provider, input(form))
          for (const [name, value] of Object.entries(provider.headers?.(spec) ?? {})) {
            assert.match(name, /^[\w!#$%&'*+.^`|~-]+$/, `header ${JSON.stringify(name)} has a name that HTTP can carry`)
            assert.match(value, /^[\t\x20-\x7e]*$/, `header ${name} has a value that HTTP can carry`)
          }
          const words = form === 'container'
            ? provider.containerSpec(spec).command
            : (provider.processSpec?.(spec) ?? []).flatMap(candidate => candidate.args)
          assert.ok(!words.some(word => word.includes(spec.engineKey)), `a ${form} has its key in its arguments, which every user of the machine can read; use env`)
        }
      }
    },
    {
      name: 'describes the options of its surfaces, and requires none of them',
      run: () => {
        for (const [name, { options }] of Object.entries(provider.surfaces)) {
          if (options === undefined) continue
          const fed = options.safeParse({})
          assert.ok(fed.success, `fed {}, surfaces.${name}.options refuses: a request of the wire format alone must do`)
          for (const [key, schema] of Object.entries(options.shape)) {
            const described = z.globalRegistry.get(schema as z.ZodType)?.description
            assert.ok(described, `surfaces.${name}.options.${key} has no description; add .meta({ description })`)
          }
        }
      }
    },
    {
      name: 'says whose it is by a licence and an address, and asks for nothing less than nothing',
      run: () => {
        const { about, requires } = provider
        assert.ok((requires?.memoryMb ?? 0) >= 0, `requires.memoryMb is ${requires?.memoryMb}`)
        for (const feature of requires?.features ?? []) {
          assert.ok(hostFeatures.includes(feature), `requires.features names '${feature}', which is not one of ${hostFeatures.join(', ')}`)
        }
        if (about === undefined) return
        assert.notEqual(about.license, '', 'about.license is empty')
        for (const page of [about.homepage, about.image?.homepage]) {
          if (page !== undefined) assert.ok(URL.canParse(page), `${page} is no address`)
        }
      }
    },
    {
      name: 'ends its warm-up with its signal',
      run: async () => {
        if (provider.warmUp === undefined) return
        const reason = new Error('the start was given up')
        const signal = AbortSignal.abort(reason)
        const client: EngineClient = {
          address: { host: '127.0.0.1', port: PORT, ports: furtherPorts(provider) },
          request: call => {
            assert.ok(call.signal.aborted, `the request for ${call.path} is given the signal of the warm-up`)
            return Promise.reject(reason)
          }
        }
        const { slot, model, engineModels } = input('container')
        await assert.rejects(provider.warmUp(client, signal, { slot, modelId: engineModels?.id ?? model?.id ?? null }),
          'a warm-up whose signal has aborted rejects')
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

/** The verdict on an answer; what is wrong with it names the answer. */
function judgeHealth (provider: EngineProvider, { status, json = null }: FedAnswer): string {
  const fed = `fed ${status} with ${JSON.stringify(json)}`
  let said: HealthVerdict | HealthReport
  try {
    said = (provider.health.verdict ?? defaultVerdict)({ status, json })
  } catch (error) {
    throw new assert.AssertionError({ message: `${fed}, health.verdict threw: ${messageOf(error)}` })
  }
  const report: HealthReport = typeof said === 'string' ? { verdict: said } : said
  assert.ok(verdicts.includes(report.verdict), `${fed}, health.verdict says ${JSON.stringify(said)}, which is not one of ${verdicts.join(', ')}`)
  const { progress = null, message = '' } = report
  assert.ok(progress === null || (progress >= 0 && progress <= 1), `${fed}, health.verdict tells a progress of ${progress}, which is not from 0 to 1`)
  assert.equal(typeof message, 'string', `${fed}, health.verdict gives a message that is no text`)
  return report.verdict
}

function assertVerdict (provider: EngineProvider, answer: FedAnswer, wanted: readonly HealthVerdict[]): void {
  const verdict = judgeHealth(provider, answer)
  const fed = `fed ${answer.status} with ${JSON.stringify(answer.json ?? null)}`
  assert.ok((wanted as readonly string[]).includes(verdict), `${fed}, health.verdict says '${verdict}' and must say ${wanted.map(word => `'${word}'`).join(' or ')}`)
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
