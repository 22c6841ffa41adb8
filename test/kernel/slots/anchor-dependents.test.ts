import t from 'tap'
import type { NamedSlotConfig, SlotConfigInput } from '../../../kernel/contract/index.js'
import { dependentsOf, inUse } from '../../../kernel/slots/shadows/anchor-dependents.js'
import { capabilitiesFile } from '../../../plugins/services/capabilities/capabilities-file.js'
import type { CapabilitySelection, CapabilitySelections } from '../../../plugins/services/capabilities/ref.js'
import { slotOf } from './plan/launch-input.js'

const anchor: SlotConfigInput = { type: 'llm', device: 'npu', provider: 'trio', npu: { embed: true } }
const onNpu: CapabilitySelection = { device: 'npu', provider: 'trio', model: 'small', enabled: true }

t.test('who goes with a slot', async t => {
  const cases: ReadonlyArray<readonly [string, Record<string, SlotConfigInput>, CapabilitySelections, string[], string[]]> = [
    ['nobody', { npu: anchor }, {}, [], []],
    ['children with a file', { npu: anchor, ear: { type: 'transcription', served_by: 'npu' }, other: { served_by: 'else' } }, {}, ['ear'], []],
    ['capabilities', { npu: anchor }, { embed: onNpu, stt: { ...onNpu, enabled: false }, rerank: { ...onNpu, device: 'cpu' } }, [], ['embed']],
    ['capabilities of another engine', { npu: anchor }, { embed: { ...onNpu, provider: 'else' } }, [], []],
    ['another anchor serves them as well', { npu: anchor, spare: { ...anchor, enabled: false } }, { embed: onNpu }, [], []],
    ['no anchor', { npu: { ...anchor, device: 'cpu' } }, { embed: onNpu }, [], []]
  ]
  for (const [name, inputs, selections, slots, chosen] of cases) {
    const configs = new Map<string, NamedSlotConfig>(Object.entries(inputs).map(([slot, input]) => [slot, slotOf(input, slot)]))
    const found = dependentsOf('npu', { slots: configs, files: new Map([[capabilitiesFile.file, selections]]) }, [capabilitiesFile])
    t.strictSame([found.slots, found.others.map(({ names }) => names)], [slots, [chosen]], name)
    const refusal = inUse('npu', found)
    t.equal(refusal?.code, slots.length + chosen.length === 0 ? undefined : 'slot.in_use', name)
    if (refusal !== null) t.strictSame(refusal.details, { slot: 'npu', slots, capabilities: chosen })
  }
  t.strictSame(dependentsOf('gone', { slots: new Map(), files: new Map() }, []), { slots: [], others: [] })
})
