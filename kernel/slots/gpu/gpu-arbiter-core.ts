/**
 * Where the GPU is on its way between the modes. `claiming` and `yielding` write down where it goes, `clearing` stops
 * the LLM slots, `freeing` the image slots, `reloading` brings the LLM slots back.
 */
export const gpuPhases = ['llm', 'claiming', 'clearing', 'img', 'yielding', 'freeing', 'reloading'] as const
export type GpuPhase = typeof gpuPhases[number]

/**
 * The arbiter as data; `decideGpu` is the only code that makes a new one. What is on disk is always the mode that the
 * engines are being moved towards, so a gateway that starts knows which engines may run, wherever the last one stopped.
 */
export interface GpuCore {
  readonly phase: GpuPhase
  readonly pinned: boolean
  /** LLM slots to bring back. */
  readonly saved: readonly string[]
  /** The other mode was asked for while this switch could not be left. */
  readonly turn: boolean
  /** Number of the write whose outcome is waited for. */
  readonly write: number
  /** Ends running image jobs when the image slots are stopped. */
  readonly force: boolean
  readonly failure: { readonly count: number, readonly message: string | null }
}

export type GpuInput =
  /** `up`: the LLM slots that run or are being loaded. */
  | { readonly type: 'want-img', readonly up: readonly string[] }
  | { readonly type: 'want-llm', readonly force: boolean }
  /** An engine that the mode does not allow has been seen: its slot was moved to the GPU while it ran. */
  | { readonly type: 'intruder', readonly up: readonly string[] }
  | { readonly type: 'pin', readonly pinned: boolean }
  | { readonly type: 'written', readonly write: number }
  | { readonly type: 'write-failed', readonly write: number, readonly message: string }
  | { readonly type: 'stopped' }
  | { readonly type: 'stop-failed', readonly message: string }
  | { readonly type: 'reloaded' }

export type GpuEffect =
  /** Writes the state file. */
  | { readonly type: 'write', readonly write: number }
  /** Refuses those who stand in line for an LLM slot: what frees up from here on is not lent again. */
  | { readonly type: 'turn-away' }
  | { readonly type: 'stop', readonly side: 'llm' | 'img', readonly force: boolean }
  | { readonly type: 'reload', readonly slots: readonly string[] }
  | { readonly type: 'stop-reload' }

export interface GpuDecision {
  readonly core: GpuCore
  readonly effects: readonly GpuEffect[]
}

export function newGpuCore (mode: 'llm' | 'img', pinned: boolean, saved: readonly string[]): GpuCore {
  const phase = mode === 'img' ? 'img' : saved.length > 0 ? 'reloading' : 'llm'
  return { phase, pinned, saved, turn: false, write: 0, force: false, failure: { count: 0, message: null } }
}

export function modeOf ({ phase }: GpuCore): 'llm' | 'img' {
  return phase === 'claiming' || phase === 'clearing' || phase === 'img' ? 'img' : 'llm'
}

export function isSettled ({ phase }: GpuCore): boolean {
  return phase === 'llm' || phase === 'img'
}

/** Whether slots of this side may be started now; `wait` for what is on its way, `no` as long as the mode lasts. */
export function mayStart (core: GpuCore, side: 'llm' | 'img'): 'yes' | 'wait' | 'no' {
  if (side === 'img') return core.phase === 'img' ? 'yes' : 'no'
  if (modeOf(core) === 'img') return 'no'
  return core.phase === 'llm' || core.phase === 'reloading' ? 'yes' : 'wait'
}

/** Every decision about the GPU. Pure: no clock, no log, no I/O. `gpu-arbiter.ts` runs the effects in order. */
export function decideGpu (core: GpuCore, input: GpuInput): GpuDecision {
  switch (input.type) {
    case 'want-img': return wantImg(core, input.up)
    case 'want-llm': return wantLlm(core, input.force)
    case 'intruder': return intruder(core, input.up)
    case 'pin': return core.pinned === input.pinned ? still(core) : write({ ...core, pinned: input.pinned })
    case 'written': return input.write === core.write ? written(core) : still(core)
    case 'write-failed': return input.write === core.write ? writeFailed(core, input.message) : still(core)
    case 'stopped': return stopped(core)
    case 'stop-failed': return stopFailed(core, input.message)
    case 'reloaded': return core.phase === 'reloading' ? write({ ...core, phase: 'llm', saved: [] }) : still(core)
  }
}

function wantImg (core: GpuCore, up: readonly string[]): GpuDecision {
  switch (core.phase) {
    case 'llm': return claim(core, up)
    case 'reloading': {
      const { core: next, effects } = claim(core, up)
      return { core: next, effects: [{ type: 'stop-reload' }, ...effects] }
    }
    // the image engine is going: it has to be gone before the way back begins
    case 'yielding': case 'freeing': return still({ ...core, turn: true, saved: union(core.saved, up) })
    case 'claiming': case 'clearing': return still({ ...core, turn: false })
    case 'img': return still(core)
  }
}

function wantLlm (core: GpuCore, force: boolean): GpuDecision {
  const next = force ? { ...core, pinned: false } : core
  switch (core.phase) {
    case 'img': return core.pinned && !force ? still(core) : giveWay(next, force)
    case 'claiming': case 'clearing': return still({ ...next, turn: true, force })
    case 'yielding': case 'freeing': return still({ ...next, turn: false, force: core.force || force })
    case 'llm': case 'reloading': return still(next)
  }
}

function intruder (core: GpuCore, up: readonly string[]): GpuDecision {
  if (core.phase === 'img') return claim(core, up)
  if (core.phase === 'llm') return { core: { ...core, phase: 'freeing', force: false }, effects: [{ type: 'stop', side: 'img', force: false }] }
  return still(core)
}

function claim (core: GpuCore, up: readonly string[]): GpuDecision {
  const { core: next, effects } = write({ ...core, phase: 'claiming', saved: union(core.saved, up), turn: false, failure: healed(core) })
  return { core: next, effects: [{ type: 'turn-away' }, ...effects] }
}

function giveWay (core: GpuCore, force: boolean): GpuDecision {
  return write({ ...core, phase: 'yielding', turn: false, force, failure: healed(core) })
}

function written (core: GpuCore): GpuDecision {
  if (core.phase === 'claiming') {
    return core.turn ? giveWay(core, core.force) : { core: { ...core, phase: 'clearing' }, effects: [{ type: 'stop', side: 'llm', force: false }] }
  }
  if (core.phase === 'yielding') return { core: { ...core, phase: 'freeing' }, effects: [{ type: 'stop', side: 'img', force: core.force }] }
  return still(core)
}

/** What could not be written down is not begun: a restart would not know of it. */
function writeFailed (core: GpuCore, message: string): GpuDecision {
  const failed = { ...core, turn: false, failure: failure(core, `the state of the GPU cannot be written: ${message}`) }
  if (core.phase === 'claiming') return reload(failed)
  if (core.phase === 'yielding') return still({ ...failed, phase: 'img' })
  return still(failed)
}

function stopped (core: GpuCore): GpuDecision {
  if (core.phase === 'clearing') return core.turn ? giveWay(core, core.force) : still({ ...core, phase: 'img' })
  if (core.phase === 'freeing') return core.turn ? claim(core, []) : reload({ ...core, force: false })
  return still(core)
}

/** An engine that cannot be stopped keeps the GPU: back to the mode it belongs to. */
function stopFailed (core: GpuCore, message: string): GpuDecision {
  const failed = { ...core, failure: failure(core, message) }
  if (core.phase === 'clearing') return write({ ...failed, phase: 'yielding', turn: false, force: false })
  if (core.phase === 'freeing') return write({ ...failed, phase: 'claiming', turn: false, force: false })
  return still(core)
}

function reload (core: GpuCore): GpuDecision {
  if (core.saved.length === 0) return still({ ...core, phase: 'llm' })
  return { core: { ...core, phase: 'reloading' }, effects: [{ type: 'reload', slots: core.saved }] }
}

function write (core: GpuCore): GpuDecision {
  const next = { ...core, write: core.write + 1 }
  return { core: next, effects: [{ type: 'write', write: next.write }] }
}

function healed ({ failure: { count } }: GpuCore): GpuCore['failure'] {
  return { count, message: null }
}

function failure ({ failure: { count } }: GpuCore, message: string): GpuCore['failure'] {
  return { count: count + 1, message }
}

function union (a: readonly string[], b: readonly string[]): readonly string[] {
  return [...new Set([...a, ...b])]
}

function still (core: GpuCore): GpuDecision {
  return { core, effects: [] }
}
