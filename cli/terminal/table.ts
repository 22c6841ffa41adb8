import { oneLine, padTo, textWidth, truncate } from './text-width.js'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => string
  /** May be shortened when the table is too wide; columns without it keep their width while they can. */
  readonly flexible?: boolean
  /** Left out when the table is too wide; the highest number goes first. */
  readonly expendable?: number
  /** Applied after the layout, so that it does not count. */
  readonly paint?: (text: string, row: Row) => string
}

interface Measured<Row> {
  readonly column: Column<Row>
  readonly cells: readonly string[]
  width: number
}

const GAP = 2
/** Below this a shortened text tells too little; rather another column goes. */
const READABLE = 16
const LEAST_WIDTH = 6
/** Characters: no terminal shows more, and measuring text takes longer than its length. */
const LONGEST_CELL = 1000

/** Lines of a table that is at most `width` columns wide, titles first. */
export function tableLines<Row> (columns: ReadonlyArray<Column<Row>>, rows: readonly Row[], width: number): string[] {
  const measured = columns.map((column): Measured<Row> => {
    const cells = rows.map(row => oneLine(column.cell(row).slice(0, LONGEST_CELL)))
    return { column, cells, width: Math.max(textWidth(column.title), ...cells.map(textWidth)) }
  })
  const shown = shrink(choose(measured, width), width)
  const line = (cell: (each: Measured<Row>) => string): string => shown.map(cell).join(' '.repeat(GAP)).trimEnd()
  const fitted = (text: string, to: number): string => padTo(truncate(text, to), to)
  return [
    line(({ column, width: to }) => fitted(column.title, to)),
    ...rows.map((row, r) => line(({ column, cells, width: to }) => {
      const text = fitted(cells[r]!, to)
      return column.paint?.(text, row) ?? text
    }))
  ]
}

/** Leaves out expendable columns until the rest can be read. */
function choose<Row> (columns: ReadonlyArray<Measured<Row>>, width: number): ReadonlyArray<Measured<Row>> {
  const least = columns.map(({ column, width: natural }) => column.flexible === true ? Math.min(natural, READABLE) : natural)
  const first = columns.reduce<Measured<Row> | null>((best, each) => rankOf(each) > rankOf(best) ? each : best, null)
  return totalOf(least) <= width || first === null ? columns : choose(columns.filter(each => each !== first), width)
}

/** Takes from the widest column that may be shortened, one place at a time; from all of them when that is not enough. */
function shrink<Row> (columns: ReadonlyArray<Measured<Row>>, width: number): ReadonlyArray<Measured<Row>> {
  for (const pool of [columns.filter(({ column }) => column.flexible), columns]) {
    while (totalOf(columns.map(each => each.width)) > width) {
      const widest = pool.reduce<Measured<Row> | null>(
        (best, each) => each.width > (best?.width ?? LEAST_WIDTH) ? each : best, null
      )
      if (widest === null) break
      widest.width -= 1
    }
  }
  return columns
}

function rankOf<Row> (each: Measured<Row> | null): number {
  return each?.column.expendable ?? 0
}

function totalOf (widths: readonly number[]): number {
  return widths.reduce((sum, each) => sum + each, GAP * (widths.length - 1))
}
