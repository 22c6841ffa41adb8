import { openDatabase } from '../../../kernel/state/database.js'

/** Commits one row, starts a second transaction with a thousand rows, and waits inside of it to be killed. */
const db = await openDatabase({ path: process.argv[2]! })
const insert = db.connection.prepare('INSERT INTO jobs (id, kind, target, state, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)')
db.transaction(() => insert.run('committed', 'pull', 'x', 'running', 'now', 'now'))
db.connection.exec('BEGIN IMMEDIATE')
for (let i = 0; i < 1000; i++) insert.run(`half-${i}`, 'pull', 'x', 'running', 'now', 'now')
process.send?.('inside')
setInterval(() => undefined, 60_000)
