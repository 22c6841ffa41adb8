/** What a ZIP archive is made of, in the numbers of its format. */

export const LOCAL = 0x04034b50
export const CENTRAL = 0x02014b50
/** Behind an entry whose size was not known when it began. */
export const DESCRIPTOR = 0x08074b50
export const END = 0x06054b50
export const END_BYTES = 22
/** Of archives with at least `MANY` entries. */
export const WIDE_END = 0x06064b50
export const WIDE_END_BYTES = 56
export const LOCATOR = 0x07064b50
export const LOCATOR_BYTES = 20
export const MANY = 0xffff
export const COMMENT_MAX = 0xffff
export const UTF8_NAMES = 0x0800
export const HAS_DESCRIPTOR = 0x0008
export const ENCRYPTED = 0x0001
export const STORED = 0
export const DEFLATED = 8
/** Of 1980-01-01, the first day that the format knows: archives of the same content are the same bytes. */
export const FIRST_DAY = 0x0021
