/** A schedule in the five fields of cron: minute, hour, day of month, month, day of week. In UTC. */
export interface Cron {
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  readonly days: ReadonlySet<number>
  readonly months: ReadonlySet<number>
  readonly weekdays: ReadonlySet<number>
  /** Both were narrowed: a day that fits either will do. */
  readonly eitherDay: boolean
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const DAY_MS = 86_400_000
const LONGEST = 200
/** The 29th of February comes again after eight years at most. */
const MOST_DAYS = 8 * 366

/** Null for what is no such schedule. Pure. */
export function cronOf (text: string): Cron | null {
  const fields = text.trim().toLowerCase().split(/\s+/)
  if (fields.length !== 5 || text.length > LONGEST) return null
  const [minute, hour, day, month, weekday] = fields as [string, string, string, string, string]
  const minutes = valuesOf(minute, 0, 59)
  const hours = valuesOf(hour, 0, 23)
  const days = valuesOf(day, 1, 31)
  const months = valuesOf(month, 1, 12, MONTHS, 1)
  const given = valuesOf(weekday, 0, 7, WEEKDAYS)
  if (minutes === null || hours === null || days === null || months === null || given === null) return null
  const weekdays = new Set([...given].map(value => value % 7))
  return { minutes, hours, days, months, weekdays, eitherDay: !day.startsWith('*') && !weekday.startsWith('*') }
}

/** The latest time at or before `now` that a schedule names, in epoch ms; null if there is none. Pure. */
export function lastFire (cron: Cron, now: number): number | null {
  const today = Math.floor(now / DAY_MS) * DAY_MS
  for (let i = 0; i < MOST_DAYS; i++) {
    const day = today - i * DAY_MS
    if (!isDay(cron, new Date(day))) continue
    const latest = i === 0 ? Math.floor((now - today) / 60_000) : 24 * 60 - 1
    for (let minute = latest; minute >= 0; minute--) {
      if (cron.hours.has(Math.floor(minute / 60)) && cron.minutes.has(minute % 60)) return day + minute * 60_000
    }
  }
  return null
}

function isDay ({ days, months, weekdays, eitherDay }: Cron, date: Date): boolean {
  if (!months.has(date.getUTCMonth() + 1)) return false
  const [byDay, byWeekday] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())]
  return eitherDay ? byDay || byWeekday : byDay && byWeekday
}

/** `*`, `5`, `1-5`, names, each with a step, and lists of these. */
function valuesOf (field: string, least: number, most: number, names: readonly string[] = [], first = 0): Set<number> | null {
  const values = new Set<number>()
  const value = (word: string): number => {
    const at = names.indexOf(word)
    return at >= 0 ? at + first : /^\d{1,2}$/.test(word) ? Number(word) : NaN
  }
  for (const part of field.split(',')) {
    const [, range = '', step = '1'] = /^([^/]+)(?:\/(\d{1,2}))?$/.exec(part) ?? []
    const [from, to = part.includes('/') ? String(most) : from, ...rest] = range === '*' ? [String(least), String(most)] : range.split('-')
    const [low, high, by] = [value(from ?? ''), value(to ?? ''), Number(step)]
    if (rest.length > 0 || !(low >= least && high <= most && low <= high && by >= 1)) return null
    for (let each = low; each <= high; each += by) values.add(each)
  }
  return values
}
