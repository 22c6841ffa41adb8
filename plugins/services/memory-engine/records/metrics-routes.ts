import type { Core } from '../core.js'
import type { WireRoute } from '../wire/answer.js'

/** What a monitoring system is shown: counts of all banks together, and no names. */
function metrics ({ store }: Core): string {
  const lines: string[] = []
  const gauge = (name: string, help: string, rows: ReadonlyArray<readonly [string, number]>): void => {
    lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, ...rows.map(([labels, value]) => `${name}${labels} ${value}`))
  }
  const count = (table: string): number => store.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)!.n
  gauge('memory_banks', 'Banks', [['', count('banks')]])
  gauge('memory_documents', 'Documents', [['', count('documents')]])
  gauge('memory_memories', 'Memories, invalidated ones too', [['', count('memories')]])
  const operations = store.all<{ status: string, n: number }>('SELECT status, count(*) AS n FROM operations GROUP BY status ORDER BY status')
  gauge('memory_operations', 'Operations that are kept, by status', operations.map(({ status, n }) => [`{status="${status}"}`, n]))
  return `${lines.join('\n')}\n`
}

export const routes: readonly WireRoute[] = [{
  method: 'GET',
  path: '/metrics',
  handler: ({ core }) => ({ status: 200, headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }, body: Buffer.from(metrics(core)) })
}]
