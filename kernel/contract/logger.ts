/** The subset of pino that plugins may use; fields first, message second. */
export interface LogFn {
  (fields: object, message?: string): void
  (message: string): void
}

export interface Logger {
  readonly debug: LogFn
  readonly info: LogFn
  readonly warn: LogFn
  readonly error: LogFn
}
