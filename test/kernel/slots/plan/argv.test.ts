import assert from 'node:assert/strict'
import fc from '../../../property.js'
import t from 'tap'
import { argvSegmentNames, type ArgvSegmentName, type FlagGrammar } from '../../../../kernel/contract/index.js'
import { managedFlags, managedFlagsAboveFields } from '../../../../kernel/slots/plan/argv/managed-flags.js'
import { flagKey, isFlag, mergeArgv, type ArgvSegments } from '../../../../kernel/slots/plan/argv/merge.js'
import { mtpEffective } from '../../../../kernel/slots/plan/mtp.js'
import { mtpFlags } from '../../../../plugins/providers/llm-server/mtp-flags.js'
import { profileOf, slotOf } from './launch-input.js'

const grammar: FlagGrammar = {
  aliases: { c: 'ctx-size', ngl: 'n-gpu-layers', fa: 'flash-attn' }, repeatable: ['lora', 'override-kv'], managed: ['port', 'ctx-size'],
  fields: ['n-gpu-layers']
}

t.test('segments merge into one command line', async t => {
  const cases: Array<{ name: string, segments: ArgvSegments, argv: string, removed?: number, provenance?: readonly string[] }> = [
    { name: 'nothing', segments: {}, argv: '', provenance: [] },
    { name: 'one flag with its value', segments: { base: ['--port', '1'] }, argv: '--port 1', provenance: ['--port 1 base'] },
    {
      name: 'the later segment wins and stands where it stood',
      segments: { base: ['--threads', '4', '--verbose'], extra_args: ['--threads', '8'] },
      argv: '--verbose --threads 8',
      removed: 1,
      provenance: ['--verbose null base', '--threads 8 extra_args']
    },
    {
      name: 'segments rank as the contract says, however they are given',
      segments: { extra_args: ['-x', 'e'], mmproj: ['-x', 'm'], slot_overrides: ['-x', 's'], chat_template: ['-x', 'c'], base: ['-x', 'b'] },
      argv: '-x e',
      removed: 4
    },
    { name: 'twice in one segment', segments: { profile: ['--a', '1', '--a', '2'] }, argv: '--a 2', removed: 1 },
    {
      name: 'short and long spelling are one flag, the winner keeps its own',
      segments: { base: ['--ctx-size', '4096'], slot_overrides: ['-c', '8192'] },
      argv: '-c 8192',
      removed: 1,
      provenance: ['-c 8192 slot_overrides']
    },
    {
      name: 'a joined value',
      segments: { base: ['--ctx-size=1'], profile: ['-c=2'], extra_args: ['--other=a=b'] },
      argv: '-c=2 --other=a=b',
      removed: 1,
      provenance: ['-c 2 profile', '--other a=b extra_args']
    },
    { name: 'negative numbers are values', segments: { base: ['--temp', '-1', '--seed', '-.5'] }, argv: '--temp -1 --seed -.5', provenance: ['--temp -1 base', '--seed -.5 base'] },
    { name: 'a lone dash is a value', segments: { base: ['--file', '-'] }, argv: '--file -', provenance: ['--file - base'] },
    { name: 'several values of one flag', segments: { base: ['--split', '3', '1'], profile: ['--split', '2', '2'] }, argv: '--split 2 2', removed: 1, provenance: ['--split 2 2 profile'] },
    { name: 'repeatable flags stay all', segments: { base: ['--lora', 'a'], extra_args: ['--lora', 'b'] }, argv: '--lora a --lora b', provenance: ['--lora a base', '--lora b extra_args'] },
    { name: 'words that belong to no flag stay', segments: { base: ['serve', '--a'], profile: ['model.gguf', '--a'] }, argv: 'serve model.gguf --a', removed: 1, provenance: ['--a null profile'] },
    { name: 'a flag named like a member of every object', segments: { base: ['--constructor', '1'], profile: ['--constructor', '2'] }, argv: '--constructor 2', removed: 1 }
  ]
  for (const { name, segments, argv, removed = 0, provenance } of cases) {
    const merged = mergeArgv(segments, grammar)
    t.equal(merged.argv.join(' '), argv, name)
    t.equal(merged.removed, removed, `${name}: removed`)
    if (provenance !== undefined) t.strictSame(merged.provenance.map(({ flag, value, segment }) => `${flag} ${value} ${segment}`), provenance, name)
  }
})

t.test('what is a flag, and which one', async t => {
  for (const word of ['-a', '--ab', '-fa', '--', '-x=1', '-e-3']) t.ok(isFlag(word), word)
  for (const word of ['a', '-', '', '-1', '-0.5', '-.5', '-1e9', 'a-b', '=']) t.notOk(isFlag(word), word)
  const keys: Array<[string, string]> = [['-c', 'ctx-size'], ['--ctx-size=1', 'ctx-size'], ['--c', 'ctx-size'], ['-fa', 'flash-attn'], ['--unknown', 'unknown']]
  for (const [word, key] of keys) t.equal(flagKey(word, grammar), key, word)
  const words = ['--port', '1', '-c=4', '--ngl', '9', '--threads', '2', 'port', '--override-kv', '--port=2', '--ctx_size=2', '-port', '--por']
  t.strictSame(managedFlagsAboveFields(words, grammar), ['--port', '-c', '--ngl', '--ctx_size', '-port'], 'managed flags in every spelling, once each')
  t.strictSame(managedFlags(words, grammar), ['--port', '-c', '--ctx_size', '-port'], 'a profile may preset what a field of the slot sets')
  t.strictSame(managedFlags(['--por', '1', '--c', '1', '--x'], { managed: ['port'], abbreviates: true }), ['--por'], 'an engine that takes abbreviations')
  t.strictSame(managedFlags(['--port', '1']), [], 'no grammar, nothing is managed')
})

const word = fc.constantFrom('-a', '--alpha', '--alpha=1', '-c', '--ctx-size', '-c=2', '--lora', '--beta', 'x', 'y', '-1', '-', '--', '--beta=-1')
const segmentsArb = fc.dictionary(fc.constantFrom(...argvSegmentNames),
  fc.array(word, { maxLength: 8 })) as fc.Arbitrary<ArgvSegments>

/** Flags and their values one by one, as a reader of the manual would split them. */
function unitsOf (segments: ArgvSegments): Array<{ key: string | null, text: string, segment: ArgvSegmentName }> {
  return argvSegmentNames.flatMap(segment => {
    const units: Array<{ key: string | null, text: string, segment: ArgvSegmentName }> = []
    let open = false
    for (const token of segments[segment] ?? []) {
      if (isFlag(token) || !open) units.push({ key: isFlag(token) ? flagKey(token, grammar) : null, text: token, segment })
      else units.at(-1)!.text += ` ${token}`
      open = true
    }
    return units
  })
}

t.test('the last value of a flag wins, and merging again changes nothing', async t => {
  fc.assert(fc.property(segmentsArb, segments => {
    const { argv, provenance, removed } = mergeArgv(segments, grammar)
    const units = unitsOf(segments)
    const repeatable = (key: string | null): boolean => key === null || grammar.repeatable!.includes(key)
    const wanted = units.filter((unit, i) => repeatable(unit.key) || !units.some((later, j) => j > i && later.key === unit.key))
    assert.equal(argv.join(' '), wanted.map(unit => unit.text).join(' '), 'the last of each stays in place, nothing else is lost')
    assert.equal(removed, units.length - wanted.length)
    assert.deepEqual(provenance.map(({ segment }) => segment), wanted.filter(({ key }) => key !== null).map(({ segment }) =>
      segment))
    const again = mergeArgv({ base: argv }, grammar)
    assert.deepEqual(again.argv, argv, 'merging what was merged changes nothing')
    assert.equal(again.removed, 0)
  }), { numRuns: 3_000 })
  t.pass('3000 command lines')
})

t.test('multi-token prediction is decided by slot, then profile and model', async t => {
  const cases: Array<[slot: boolean | null, profile: boolean | null, eligible: boolean, effective: boolean]> = [
    [true, false, false, true], [true, null, false, true], [false, true, true, false],
    [null, true, true, true], [null, true, false, false], [null, false, true, false], [null, null, true, false]
  ]
  for (const [mtp, profile, eligible, effective] of cases) {
    const result = mtpEffective(slotOf({ mtp }), profile === null ? null : profileOf({ mtp: profile }), eligible)
    t.equal(result, effective, `slot ${mtp}, profile ${profile}, model ${eligible ? 'eligible' : 'not eligible'}`)
  }
})

t.test('multi-token prediction adds its flags for the device of the backend', async t => {
  const deviceOf = (flags: readonly string[]): string => flags[flags.indexOf('--spec-draft-device') + 1]!
  t.equal(deviceOf(mtpFlags('rocm')), 'ROCm0')
  t.equal(deviceOf(mtpFlags('vulkan')), 'Vulkan0')
  t.equal(deviceOf(mtpFlags('cuda')), 'CUDA0')
  t.equal(deviceOf(mtpFlags(null)), 'ROCm0')
  t.equal(mtpFlags('rocm').join(' '), [
    '--spec-type draft-mtp --spec-draft-device ROCm0 --spec-draft-ngl all --spec-draft-n-max 4 --spec-draft-n-min 0',
    '--spec-draft-p-min 0.0 --spec-draft-p-split 0.10 --spec-draft-type-k q8_0 --spec-draft-type-v q8_0',
    '--spec-draft-threads 16 --spec-draft-threads-batch 32 --spec-draft-poll 1 --spec-draft-poll-batch 1'
  ].join(' '))
})
