/**
 * Does the text hold the needle? In time linear in both (Knuth, Morris, Pratt), for texts that strangers choose:
 * `String.prototype.includes` takes their product for needles like `aaab`.
 */
export function createTextSearch(needle: string): (text: string) => boolean {
  if (needle.length <= shortNeedle) return (text) => text.includes(needle)
  let borders: Uint16Array | null = null
  return (text) => {
    if (text.length <= shortText) return text.includes(needle)
    borders ??= bordersOf(needle)
    let matched = 0
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      while (matched > 0 && code !== needle.charCodeAt(matched)) matched = borders[matched - 1] as number
      if (code === needle.charCodeAt(matched)) matched++
      if (matched === needle.length) return true
    }
    return false
  }
}

/** Per place: the length of the longest border of the needle up to there. */
function bordersOf(needle: string): Uint16Array {
  const borders = new Uint16Array(needle.length)
  let length = 0
  for (let i = 1; i < needle.length; i++) {
    while (length > 0 && needle.charCodeAt(i) !== needle.charCodeAt(length)) length = borders[length - 1] as number
    if (needle.charCodeAt(i) === needle.charCodeAt(length)) length++
    borders[i] = length
  }
  return borders
}

/** Searched in linear time by the engine. */
const shortNeedle = 4
const shortText = 512
