/** A refusal as the wire has it: `{"detail": …}`. */
export class WireError extends Error {
  readonly status: number
  readonly detail: unknown

  constructor (status: number, detail: unknown) {
    super(typeof detail === 'string' ? detail : JSON.stringify(detail))
    this.status = status
    this.detail = detail
  }
}

export function bankNotFound (bankId: string): WireError {
  return new WireError(404, `Bank '${bankId}' not found`)
}
