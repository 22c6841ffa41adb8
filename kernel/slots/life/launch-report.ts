import type { LaunchPhase } from '../schedule/scheduled-slot.js'

/** @param progress 0 to 1 of the phase, where it is known */
export type Report = (phase: LaunchPhase, message: string, progress?: number | null) => void
