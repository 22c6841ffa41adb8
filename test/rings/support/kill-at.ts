import { closeSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import promises from 'node:fs/promises'
import { createRequire, syncBuiltinESMExports } from 'node:module'
import { isMainThread } from 'node:worker_threads'

/**
 * Loaded before a gateway: ends it with SIGKILL right before the file operation whose number stands in the file that
 * `SVC_RING_KILL` names, counted from the moment at which that was written. Only operations count that change what there is below
 * the folder `SVC_RING_KILL_BELOW`; each writes what it was to the file beside, `.at`. With `SVC_RING_KILL_TABLE`, steps of the
 * database that has this table, in whichever thread: beginnings and ends of transactions, and rows that are added.
 */
const { SVC_RING_KILL: arm, SVC_RING_KILL_BELOW: below, SVC_RING_KILL_TABLE: table } = process.env
const isGateway = isMainThread && process.argv.includes('serve')
if (arm !== undefined && below !== undefined && isGateway) {
  type Change = (path: string, ...more: unknown[]) => Promise<unknown>
  const changes = promises as unknown as Record<'rename' | 'rm' | 'rmdir', Change>
  for (const name of ['rename', 'rm', 'rmdir'] as const) {
    const change = changes[name]
    changes[name] = async (path, ...more) => {
      if (path.startsWith(below)) count(arm, `${name} ${path.slice(below.length)}`)
      return await change(path, ...more)
    }
  }
  syncBuiltinESMExports()
}

// a thread has no arguments, and no other program of these tests has threads
if (arm !== undefined && table !== undefined && (isGateway || !isMainThread)) {
  // below the library, which the program that ships has a copy of
  type Call = (this: object, ...values: unknown[]) => unknown
  const native = createRequire(import.meta.url)(`@libsql/linux-${process.arch}-gnu`) as Record<'databaseExecSync' | 'databasePrepareSync' | 'statementRun', Call>
  const { databaseExecSync: exec, databasePrepareSync: prepare, statementRun: run } = native
  const its = new WeakSet<object>()
  const additions = new WeakMap<object, string>()
  native.databaseExecSync = function (sql) {
    if (its.has(this) && /^(?:BEGIN|COMMIT)/.test(String(sql))) count(arm, String(sql))
    return exec.call(this, sql)
  }
  native.databasePrepareSync = function (sql) {
    if (String(sql).includes(table)) its.add(this)
    const statement = prepare.call(this, sql) as object
    if (its.has(this) && String(sql).startsWith('INSERT')) additions.set(statement, String(sql))
    return statement
  }
  native.statementRun = function (...values) {
    const sql = additions.get(this)
    if (sql !== undefined) count(arm, sql)
    return run.call(this, ...values)
  }
}

function count (file: string, what: string): void {
  const left = Number(readFileSync(file, 'utf8'))
  if (left === 0) return
  writeFileSync(file, String(left - 1))
  if (left > 1) return
  const told = openSync(`${file}.at`, 'w')
  writeSync(told, what)
  closeSync(told)
  process.kill(process.pid, 'SIGKILL')
}
