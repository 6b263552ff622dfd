/**
 * Does the text hold the needle? In time linear in both (Knuth, Morris, Pratt), for texts that strangers choose:
 * `String.prototype.includes` takes their product for needles like `aaab`.
 */
export function createTextSearch(needle: string): (text: string) => boolean {
  if (needle.length <= shortNeedle) return (text) => text.includes(needle)
  let table: { codes: Uint16Array; borders: Uint16Array } | null = null
  return (text) => {
    if (text.length <= shortText) return text.includes(needle)
    table ??= tableOf(needle)
    return search(text, table.codes, table.borders)
  }
}

function search(text: string, codes: Uint16Array, borders: Uint16Array): boolean {
  const { length } = codes
  let matched = 0
  for (let i = 0, end = text.length; i < end; i++) {
    const code = text.charCodeAt(i)
    while (code !== codes[matched]) {
      if (matched === 0) {
        matched = -1
        break
      }
      matched = borders[matched - 1] as number
    }
    if (++matched === length) return true
  }
  return false
}

/** `borders[i]`: the length of the longest border of the needle up to there. */
function tableOf(needle: string): { codes: Uint16Array; borders: Uint16Array } {
  const codes = Uint16Array.from({ length: needle.length }, (_, i) => needle.charCodeAt(i))
  const borders = new Uint16Array(needle.length)
  let length = 0
  for (let i = 1; i < needle.length; i++) {
    while (length > 0 && codes[i] !== codes[length]) length = borders[length - 1] as number
    if (codes[i] === codes[length]) length++
    borders[i] = length
  }
  return { codes, borders }
}

/** Searched in linear time by the engine. */
const shortNeedle = 4
const shortText = 512
