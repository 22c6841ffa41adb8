/** One process of the operating system, alive (a zombie counts as gone). */
export interface ProcessEntry {
  readonly pid: number
  readonly group: number
  /** Tells this process from any other that has or had the same pid. Comparable within one table only. */
  readonly startId: string
}

/** What the process driver asks the operating system. Answers are a moment old when they arrive. */
export interface ProcessTable {
  /** Null when there is no such process, or only its zombie. */
  find (pid: number): Promise<ProcessEntry | null>
  /** Every living process that this user may see. */
  all (): Promise<readonly ProcessEntry[]>
  /** Pids that were started with this `NAME=value` in their environment, as far as that can be read. */
  withEnv (assignment: string): Promise<ReadonlySet<number>>
  /** Pids that have the file open, as far as that can be read. */
  withOpen (file: string): Promise<ReadonlySet<number>>
}
