import fc from '../../property.js'
import t from 'tap'
import { z } from 'zod'
import type { EngineProvider, NamedProfile, NamedSlotConfig, SlotConfigInput, SlotProblem } from '../../../kernel/contract/index.js'
import { checkSlotSet, rivalsOf, slotProblemError, type SlotSetContext } from '../../../kernel/slots/write/slot-rules.js'
import { laid } from '../../providers.js'
import { profileOf, providerOf, slotOf } from './plan/launch-input.js'

const trio = providerOf({
  name: 'trio',
  devices: ['npu'],
  slotTypes: ['llm', 'embedding'],
  exclusivity: 'exclusive',
  children: [{ suffix: '-embed', type: 'embedding', model: 'small', active: () => true }]
})
const providers: readonly EngineProvider[] = [
  providerOf(),
  trio,
  providerOf({ name: 'greedy', exclusivity: 'exclusive' }),
  providerOf({ name: 'one-of-each', exclusivity: 'coexist-by-type' }),
  providerOf({ name: 'picky', slotOptions: z.strictObject({ level: z.int().max(3).default(1) }) })
]
const profiles: readonly NamedProfile[] = [profileOf({ backend: 'rocm' }, 'rocm'), profileOf({ device_class: 'cpu' }, 'cpu-llm')]

function contextOf (overrides: Partial<SlotSetContext> = {}): SlotSetContext {
  return {
    profiles: new Map(profiles.map(profile => [profile.name, profile])),
    providers: laid(...providers),
    device: slot => slot.device ?? 'cpu',
    model: () => undefined,
    gpus: [],
    runtime: {
      form: 'process',
      names: () => ['far'],
      formOf: name => name === 'far' ? 'process' : null,
      isElsewhere: name => name === 'far',
      optionsOf: name => name === 'far' ? z.strictObject({ zone: z.string().optional() }) : undefined
    },
    maxSlots: 0,
    gatewayPort: 8080,
    ...overrides
  }
}

function setOf (slots: Readonly<Record<string, SlotConfigInput>>): NamedSlotConfig[] {
  return Object.entries(slots).map(([name, config]) => slotOf({ provider: 'test-engine', ...config }, name))
}

const rulesOf = (problems: readonly SlotProblem[]): string[] => problems.map(({ slot, rule, code }) => `${slot} ${rule} ${code}`)

t.test('what a slot of several engines cannot be is refused by name, with the key and the way out', async t => {
  const cases: Array<[slot: SlotConfigInput, param: string | null, says: RegExp]> = [
    [{ replicas: 2 }, null, /^/],
    [{ replicas: 2, min_replicas: 1, max_replicas: 4 }, null, /^/],
    [{ replicas: 3, max_replicas: 2 }, 'max_replicas', /3 replicas but `max_replicas` allows 2/],
    [{ min_replicas: 2 }, 'min_replicas', /keeps 2 replicas running but may have 1/],
    [{ max_replicas: 2, port: 8100 }, 'port', /leave `port` out/],
    [{ max_replicas: 2, type: 'image' }, 'replicas', /an image slot has one engine/],
    [{ max_replicas: 2, provider: 'greedy' }, 'replicas', /need their device to themselves/],
    [{ max_replicas: 2, type: 'embedding', served_by: 'b' }, 'replicas', /has no replicas of its own/]
  ]
  for (const [slot, param, says] of cases) {
    const found = checkSlotSet(setOf({ a: slot, b: {} }), contextOf()).filter(({ rule }) => rule === 'replicas')
    if (param === null) t.strictSame(found, [])
    else t.match(found, [{ slot: 'a', code: 'slot.config_error', param, message: says }])
  }
})

t.test('rules between slots and inside one', async t => {
  const npu: SlotConfigInput = { device: 'npu', provider: 'trio' }
  const cases: Array<[name: string, slots: Readonly<Record<string, SlotConfigInput>>, problems: string[]]> = [
    ['nothing to say', { a: {}, b: { device: 'gpu-rocm', profile: 'rocm' } }, []],
    ['two llm slots on the NPU', { a: npu, b: npu }, ['a exclusivity slot.npu_exclusivity_violation', 'b exclusivity slot.npu_exclusivity_violation']],
    ['of providers that claim nothing', { a: { device: 'npu', provider: 'away' }, b: { device: 'npu', provider: 'away' } },
      ['a exclusivity slot.npu_exclusivity_violation', 'b exclusivity slot.npu_exclusivity_violation']],
    ['one of them disabled', { a: npu, b: { ...npu, enabled: false } }, []],
    ['the NPU and another device', { a: npu, b: { device: 'cpu' } }, []],
    ['children of the NPU slot', { a: { ...npu, port: 8085 }, e: { ...npu, type: 'embedding', served_by: 'a', port: 8085 } }, []],
    ['two that want a device for themselves', { a: { provider: 'greedy', device: 'cpu' }, b: { provider: 'greedy', device: 'cpu' } },
      ['a exclusivity slot.config_error', 'b exclusivity slot.config_error']],
    ['engines on other machines have nothing here for themselves', { a: { provider: 'greedy', runtime: 'far' }, b: { provider: 'greedy' }, n: npu,
      m: { ...npu, runtime: 'far' } }, []],
    ['a driver that no plugin brings', { a: { runtime: 'near' } }, ['a runtime slot.config_error']],
    ['what a driver is not told', { a: { runtime: 'far', runtime_options: { zome: 'b' } }, b: { runtime_options: { zone: 'b' } } },
      ['a runtime validation.unknown_keys', 'b runtime validation.invalid']],
    ['one that does, and one that shares', { a: { provider: 'greedy' }, b: {} }, []],
    ['GPU runtimes are one GPU', { a: { provider: 'greedy', device: 'gpu-rocm' }, b: { provider: 'greedy', device: 'gpu-vulkan' } },
      ['a exclusivity slot.config_error', 'b exclusivity slot.config_error']],
    ['two GPUs', { a: { provider: 'greedy', device: 'gpu-rocm', gpu_index: 0 }, b: { provider: 'greedy', device: 'gpu-rocm', gpu_index: 1 } }, []],
    ['one of each type', { a: { provider: 'one-of-each' }, b: { provider: 'one-of-each', type: 'embedding' } }, []],
    ['two of one type', { a: { provider: 'one-of-each' }, b: { provider: 'one-of-each' } }, ['a exclusivity slot.config_error', 'b exclusivity slot.config_error']],
    ['two defaults', { a: { default: true }, b: { default: true } }, ['a default slot.config_error', 'b default slot.config_error']],
    ['a default of each type', { a: { default: true }, b: { default: true, type: 'embedding' } }, []],
    ['one port twice', { a: { port: 8085 }, b: { port: 8085 } }, ['a port slot.port_conflict', 'b port slot.port_conflict']],
    ['a disabled slot owns its port', { a: { port: 8085 }, b: { port: 8085, enabled: false } }, ['a port slot.port_conflict', 'b port slot.port_conflict']],
    ['the port of the gateway', { a: { port: 8080 } }, ['a port slot.port_conflict']],
    ['children of one anchor share its port', { a: { ...npu, port: 8085 }, x: { ...npu, type: 'embedding', served_by: 'a', port: 8085 },
      y: { ...npu, type: 'embedding', served_by: 'a', port: 8085 } }, []],
    ['an anchor that is not there', { e: { type: 'embedding', served_by: 'a' } }, ['e anchor slot.config_error']],
    ['an anchor that has one itself', { a: npu, e: { ...npu, type: 'embedding', served_by: 'a' }, f: { ...npu, type: 'embedding', served_by: 'e' } }, ['f anchor slot.config_error']],
    ['an anchor that serves no such child', { a: npu, f: { type: 'reranking', served_by: 'a' } }, ['f anchor slot.config_error']],
    ['a type that the provider does not run', { a: { type: 'tts' } }, ['a provider slot.config_error']],
    ['a device that it does not run on', { a: { device: 'gpu-cuda' } }, ['a provider slot.config_error']],
    ['a provider that is away', { a: { provider: 'away', type: 'tts', profile: 'absent' } }, []],
    ['a flag of the gateway\'s', { a: { server: { extra_args: '--port 1' } } }, ['a args slot.managed_arg_denied']],
    ['forced MTP without a GPU', { a: { device: 'cpu', mtp: true } }, ['a args slot.config_error']],
    ['an open quote', { a: { server: { extra_args: '--name "x' } } }, ['a args slot.config_error']],
    ['options that the provider refuses', { a: { provider: 'picky', options: { level: 9 } } }, ['a options validation.invalid']],
    ['options that it does not know', { a: { provider: 'picky', options: { depth: 9 } } }, ['a options validation.unknown_keys']],
    ['a profile that is not there', { a: { profile: 'absent' } }, ['a profile profiles.not_found']],
    ['a profile for another device', { a: { device: 'gpu-vulkan', profile: 'rocm' } }, ['a profile slot.config_error']]
  ]
  for (const [name, slots, expected] of cases) t.strictSame(rulesOf(checkSlotSet(setOf(slots), contextOf())), expected, name)
})

t.test('capacity counts in the order of the set', async t => {
  const problems = checkSlotSet(setOf({ a: {}, b: {}, c: {} }), contextOf({ maxSlots: 2 }))
  t.strictSame(rulesOf(problems), ['c capacity slot.capacity_exhausted'])
})

t.test('a problem says who, where and what to do', async t => {
  const [problem] = checkSlotSet(setOf({ one: { device: 'npu', provider: 'trio' }, two: { device: 'npu', provider: 'trio' } }), contextOf())
  t.match(problem, { message: /'two' has it; disable that slot first/, details: { slot: 'one', conflicting_slots: ['two'], hint: 'svc slot edit two --disable' } })
  t.match(slotProblemError(problem!), { code: 'slot.npu_exclusivity_violation', status: 409, details: { slot: 'one' } })
  const [port] = checkSlotSet(setOf({ a: { port: 8085 }, b: { port: 8085 } }), contextOf())
  t.match(port, { param: 'port', message: /port 8085 belongs to slot 'b'/, details: { owners: ['b'] } })
  const [told] = checkSlotSet(setOf({ a: { runtime_options: { zone: 'b' } } }), contextOf())
  t.match(told, { message: /needs a slot whose `runtime` is a driver from a plugin; remove it with `svc slot edit a --runtime-option none`, or send it as null$/ })
})

t.test('what one slot clashes with clashes with it, whatever the order', async t => {
  const slot = fc.record({
    provider: fc.constantFrom('test-engine', 'trio', 'greedy', 'one-of-each', 'away'),
    device: fc.constantFrom('cpu', 'gpu-rocm', 'gpu-vulkan', 'npu'),
    type: fc.constantFrom('llm', 'embedding'),
    gpu_index: fc.constantFrom(null, 0, 1),
    enabled: fc.boolean(),
    default: fc.boolean(),
    port: fc.constantFrom(8085, 8086, 8080)
  }) as fc.Arbitrary<SlotConfigInput>
  fc.assert(fc.property(fc.array(slot, { maxLength: 6 }), inputs => {
    const slots = inputs.map((input, i) => slotOf(input, `s${i}`))
    const rivals = rivalsOf(slots, contextOf())
    for (const [slot, others] of rivals) {
      if (!others.every(other => rivals.get(other)?.includes(slot) === true)) throw new Error('one-sided')
    }
    const sorted = (problems: readonly SlotProblem[]): string[] => rulesOf(problems).sort()
    const [forth, back] = [sorted(checkSlotSet(slots, contextOf())), sorted(checkSlotSet([...slots].reverse(), contextOf()))]
    if (forth.join() !== back.join()) throw new Error('order matters')
  }))
  t.pass('on everything that was tried')
})
