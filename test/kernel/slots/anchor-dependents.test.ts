import t from 'tap'
import type { CapabilitySelection, ConfigDraft, NamedSlotConfig, SlotConfigInput } from '../../../kernel/contract/index.js'
import { companyOf, inCompany } from '../../../kernel/slots/shadows/anchor-dependents.js'
import { slotOf } from './launch-input.js'

const anchor: SlotConfigInput = { type: 'llm', device: 'npu', provider: 'trio', npu: { embed: true } }
const onNpu: CapabilitySelection = { device: 'npu', provider: 'trio', model: 'small', enabled: true }

t.test('who goes with a slot', async t => {
  const cases: ReadonlyArray<readonly [string, Record<string, SlotConfigInput>, ConfigDraft['capabilities'], string[], string[]]> = [
    ['nobody', { npu: anchor }, {}, [], []],
    ['children with a file', { npu: anchor, ear: { type: 'transcription', served_by: 'npu' }, other: { served_by: 'else' } }, {}, ['ear'], []],
    ['capabilities', { npu: anchor }, { embed: onNpu, stt: { ...onNpu, enabled: false }, rerank: { ...onNpu, device: 'cpu' } }, [], ['embed']],
    ['capabilities of another engine', { npu: anchor }, { embed: { ...onNpu, provider: 'else' } }, [], []],
    ['another anchor serves them as well', { npu: anchor, spare: { ...anchor, enabled: false } }, { embed: onNpu }, [], []],
    ['no anchor', { npu: { ...anchor, device: 'cpu' } }, { embed: onNpu }, [], []]
  ]
  for (const [name, inputs, capabilities, slots, chosen] of cases) {
    const configs = new Map<string, NamedSlotConfig>(Object.entries(inputs).map(([slot, input]) => [slot, slotOf(input, slot)]))
    const company = companyOf('npu', { slots: configs, capabilities })
    t.strictSame(company, { slots, capabilities: chosen }, name)
    t.equal(inCompany('npu', company)?.code, slots.length + chosen.length === 0 ? undefined : 'slot.in_use', name)
  }
  t.strictSame(companyOf('gone', { slots: new Map(), capabilities: {} }), { slots: [], capabilities: [] })
})
