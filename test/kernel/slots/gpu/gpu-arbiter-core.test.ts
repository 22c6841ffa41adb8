import t from 'tap'
import {
  decideGpu, gpuPhases, isSettled, mayStart, modeOf, newGpuCore, type GpuCore, type GpuEffect, type GpuInput, type GpuPhase
} from '../../../../kernel/slots/gpu/gpu-arbiter-core.js'

const base = newGpuCore('llm', false, [])
const at = (phase: GpuPhase, more: Partial<GpuCore> = {}): GpuCore => ({ ...base, phase, write: 7, ...more })

interface Case {
  readonly name: string
  readonly from: GpuCore
  readonly input: GpuInput
  readonly to: Partial<GpuCore>
  readonly effects?: readonly GpuEffect[]
}

const write = { type: 'write', write: 8 } as const
const turnAway: GpuEffect = { type: 'turn-away' }
const stopLlm = { type: 'stop', side: 'llm', force: false } as const
const stopImg = { type: 'stop', side: 'img', force: false } as const

const cases: readonly Case[] = [
  { name: 'a claim is written down before anything is stopped', from: at('llm'), input: { type: 'want-img', up: ['a', 'b'] },
    to: { phase: 'claiming', saved: ['a', 'b'] }, effects: [turnAway, write] },
  { name: 'then the others are stopped', from: at('claiming'), input: { type: 'written', write: 7 }, to: { phase: 'clearing' }, effects: [stopLlm] },
  { name: 'an old write says nothing', from: at('claiming'), input: { type: 'written', write: 6 }, to: { phase: 'claiming' } },
  { name: 'what cannot be written is not begun', from: at('claiming', { saved: ['a'] }), input: { type: 'write-failed', write: 7, message: 'full' },
    to: { phase: 'reloading', failure: { count: 1, message: 'the state of the GPU cannot be written: full' } },
    effects: [{ type: 'reload', slots: ['a'] }] },
  { name: 'the GPU is free', from: at('clearing'), input: { type: 'stopped' }, to: { phase: 'img' } },
  { name: 'an engine that stays keeps it', from: at('clearing', { saved: ['a'] }), input: { type: 'stop-failed', message: 'stuck' },
    to: { phase: 'yielding', saved: ['a'], failure: { count: 1, message: 'stuck' } }, effects: [write] },
  { name: 'a second request joins', from: at('clearing'), input: { type: 'want-img', up: [] }, to: { phase: 'clearing', turn: false } },
  { name: 'an image request in image mode', from: at('img'), input: { type: 'want-img', up: [] }, to: { phase: 'img' } },
  { name: 'the way back is written down first', from: at('img', { saved: ['a'] }), input: { type: 'want-llm', force: false },
    to: { phase: 'yielding', saved: ['a'] }, effects: [write] },
  { name: 'pinned stays', from: at('img', { pinned: true }), input: { type: 'want-llm', force: false }, to: { phase: 'img', pinned: true } },
  { name: 'force takes the pin away', from: at('img', { pinned: true }), input: { type: 'want-llm', force: true },
    to: { phase: 'yielding', pinned: false, force: true }, effects: [write] },
  { name: 'then the image engines are stopped', from: at('yielding'), input: { type: 'written', write: 7 }, to: { phase: 'freeing' }, effects: [stopImg] },
  { name: 'by force when that was asked for', from: at('yielding', { force: true }), input: { type: 'written', write: 7 }, to: { phase: 'freeing' },
    effects: [{ ...stopImg, force: true }] },
  { name: 'a way back that cannot be written is not begun', from: at('yielding'), input: { type: 'write-failed', write: 7, message: 'full' }, to: { phase: 'img' } },
  { name: 'the others come back', from: at('freeing', { saved: ['a'] }), input: { type: 'stopped' }, to: { phase: 'reloading' },
    effects: [{ type: 'reload', slots: ['a'] }] },
  { name: 'none to bring back', from: at('freeing'), input: { type: 'stopped' }, to: { phase: 'llm' } },
  { name: 'an image engine that stays keeps the GPU', from: at('freeing'), input: { type: 'stop-failed', message: 'stuck' },
    to: { phase: 'claiming', failure: { count: 1, message: 'stuck' } }, effects: [write] },
  { name: 'all are back', from: at('reloading', { saved: ['a'] }), input: { type: 'reloaded' }, to: { phase: 'llm', saved: [] }, effects: [write] },
  { name: 'an image request while they come back', from: at('reloading', { saved: ['a', 'b'] }), input: { type: 'want-img', up: ['a', 'c'] },
    to: { phase: 'claiming', saved: ['a', 'b', 'c'] }, effects: [{ type: 'stop-reload' }, turnAway, write] },
  { name: 'a late end of the reload says nothing', from: at('claiming'), input: { type: 'reloaded' }, to: { phase: 'claiming' } },
  { name: 'an image request while the engine goes', from: at('freeing', { saved: ['a'] }), input: { type: 'want-img', up: [] }, to: { phase: 'freeing', turn: true } },
  { name: 'turns round once it is gone', from: at('freeing', { saved: ['a'], turn: true }), input: { type: 'stopped' },
    to: { phase: 'claiming', saved: ['a'], turn: false }, effects: [turnAway, write] },
  { name: 'image mode that nobody can want any more turns round too', from: at('clearing'), input: { type: 'want-llm', force: true }, to: { phase: 'clearing', turn: true } },
  { name: '... when its engines are gone', from: at('clearing', { turn: true }), input: { type: 'stopped' }, to: { phase: 'yielding', turn: false }, effects: [write] },
  { name: '... or before they were touched', from: at('claiming', { turn: true }), input: { type: 'written', write: 7 }, to: { phase: 'yielding' }, effects: [write] },
  { name: 'a pin is written down', from: at('llm'), input: { type: 'pin', pinned: true }, to: { phase: 'llm', pinned: true }, effects: [write] },
  { name: 'the same pin is not', from: at('img', { pinned: true }), input: { type: 'pin', pinned: true }, to: { pinned: true } },
  { name: 'an intruder in image mode', from: at('img', { saved: ['a'] }), input: { type: 'intruder', up: ['b'] },
    to: { phase: 'claiming', saved: ['a', 'b'] }, effects: [turnAway, write] },
  { name: 'an intruder in LLM mode', from: at('llm'), input: { type: 'intruder', up: [] }, to: { phase: 'freeing' }, effects: [stopImg] },
  { name: 'a switch that works takes the error away', from: at('llm', { failure: { count: 3, message: 'old' } }), input: { type: 'want-img', up: [] },
    to: { phase: 'claiming', failure: { count: 3, message: null } }, effects: [turnAway, write] }
]

t.test('the arbiter decides each case of its table', async t => {
  for (const { name, from, input, to, effects = [] } of cases) {
    const decision = decideGpu(Object.freeze(from), input)
    t.match(decision.core, to, name)
    t.strictSame(decision.effects, effects, `${name}: effects`)
  }
})

t.test('the phase of the GPU decides which side may start', async t => {
  const answers = Object.fromEntries(gpuPhases.map(phase => [phase, [modeOf(at(phase)), mayStart(at(phase), 'llm'), mayStart(at(phase), 'img')]]))
  t.strictSame(answers, {
    llm: ['llm', 'yes', 'no'],
    claiming: ['img', 'no', 'no'],
    clearing: ['img', 'no', 'no'],
    img: ['img', 'no', 'yes'],
    yielding: ['llm', 'wait', 'no'],
    freeing: ['llm', 'wait', 'no'],
    reloading: ['llm', 'yes', 'no']
  })
})

t.test('a run begins where the last one was going', async t => {
  t.equal(newGpuCore('img', true, ['a']).phase, 'img')
  t.equal(newGpuCore('llm', false, ['a']).phase, 'reloading', 'it had not brought all of them back')
  t.equal(newGpuCore('llm', false, []).phase, 'llm')
})

t.test('every input in every phase leads to a phase with something on its way, or to rest', async t => {
  const inputs: readonly GpuInput[] = [
    { type: 'want-img', up: ['a'] }, { type: 'want-llm', force: false }, { type: 'want-llm', force: true }, { type: 'intruder', up: ['a'] },
    { type: 'pin', pinned: true }, { type: 'written', write: 7 }, { type: 'write-failed', write: 7, message: 'm' }, { type: 'stopped' },
    { type: 'stop-failed', message: 'm' }, { type: 'reloaded' }
  ]
  const expected: Readonly<Partial<Record<GpuPhase, GpuEffect['type']>>> = {
    claiming: 'write', yielding: 'write', clearing: 'stop', freeing: 'stop', reloading: 'reload'
  }
  for (const phase of gpuPhases) {
    for (const turn of [false, true]) {
      for (const input of inputs) {
        const { core, effects } = decideGpu(at(phase, { turn, saved: ['x'] }), input)
        if (core.phase === phase || isSettled(core)) continue
        t.ok(effects.some(({ type }) => type === expected[core.phase]), `${phase} + ${input.type} -> ${core.phase}`)
      }
    }
  }
})
