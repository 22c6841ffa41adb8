/** One step of the database's form. Never changed once released: its checksum is kept in the file. */
export interface DatabaseMigration {
  /** Counts up from 1 without gaps. */
  readonly version: number
  readonly name: string
  readonly sql: string
}
