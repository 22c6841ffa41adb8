import { overridesOf, type BankRow } from '../store/bank-table.js'

export const traits = ['skepticism', 'literalism', 'empathy'] as const
const MIDDLE = 3

export interface Disposition { readonly skepticism: number, readonly literalism: number, readonly empathy: number }

export function dispositionOf (bank: BankRow): Disposition {
  const own = overridesOf(bank)
  const [skepticism, literalism, empathy] = traits.map(trait => (own[`disposition_${trait}`] ?? MIDDLE) as number)
  return { skepticism: skepticism!, literalism: literalism!, empathy: empathy! }
}

export function missionOf (bank: BankRow): string {
  return (overridesOf(bank).reflect_mission ?? '') as string
}

/** `BankProfileResponse` of the wire. */
export function profileOf (bank: BankRow): Readonly<Record<string, unknown>> {
  const mission = missionOf(bank)
  return { bank_id: bank.bank_id, name: bank.name, disposition: dispositionOf(bank), mission, background: mission }
}

/** What the removed calls answer. */
export const PROFILE_GONE = 'The bank profile endpoints have been removed. Disposition traits and the reflect mission are bank configuration: ' +
  'read them from GET /v1/default/banks/{bank_id}/config as `disposition_skepticism`, `disposition_literalism`, `disposition_empathy` and ' +
  '`reflect_mission`, and write them with PATCH /v1/default/banks/{bank_id}/config. The `name` field this endpoint also returned was a ' +
  'display-only label; read it from GET /v1/default/banks.'
