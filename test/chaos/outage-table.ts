import type { OutageReport } from './outage.js'

/** The report for people. Pure. */
export function outageTable (report: OutageReport): string {
  const { starts, pulls } = report
  const rows: Array<readonly [string, string]> = [
    ['seed', String(report.seed)],
    ['time', `${report.seconds} s`],
    ['engines', report.engine],
    ['starts', `${starts.count}, median ${starts.medianMs} ms, longest ${starts.longestMs} ms`],
    ['starts that a faulty disk refused', String(starts.refusedByDisk)],
    ...Object.entries(report.ends).map(([how, count]) => [`ended by ${how}`, String(count)] as const),
    ...Object.entries(report.faults).sort().map(([fault, count]) => [fault, String(count)] as const),
    ...[...report.writes].sort().map(([kind, { acknowledged, refused, failed, unanswered }]) =>
      [`writes: ${kind}`, `${acknowledged} acknowledged, ${refused} refused, ${failed} failed, ${unanswered} unanswered`] as const),
    ['pulls', `${pulls.taken} taken on, ${pulls.completed} completed, ${pulls.full} ended by a disk that took nothing`],
    ...Object.entries(report.streams).sort().map(([outcome, count]) => [`streams ${outcome}`, String(count)] as const),
    ['values read back', String(report.readings)],
    ['audit rows read back', String(report.audited)],
    ['problems', String(report.problems.length)]
  ]
  const width = Math.max(...rows.map(([name]) => name.length))
  return [...rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`), ...report.problems.map(problem => `- ${problem}`)].join('\n')
}
