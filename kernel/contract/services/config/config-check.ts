import type { Diagnostic } from './config.js'

export const findingSeverities = ['error', 'warning'] as const

/** Something wrong in the configuration files: in one of them, or between them. */
export interface Finding extends Diagnostic {
  /** `warning`: the gateway works as it is configured, and probably not as it was meant. */
  readonly severity: typeof findingSeverities[number]
  /** What a request that runs into it is refused with. */
  readonly code: string
}

export interface ConfigCheck {
  /**
   * Everything that is wrong in the files and between them, as `svc config validate` says it. Looked for anew when
   * configuration, models or plugins have changed; a slow disk gives the findings of before. Never rejects.
   */
  findings (): Promise<readonly Finding[]>
}
