// English words too common to tell texts apart, with the stumps that contractions leave (`isn't` gives `isn`).

export const english: readonly string[] = `
a about above after again against all also am an and any are aren as at be because been before being below between both
but by can cannot could couldn did didn do does doesn doing down during each few for from further had hadn has hasn have
haven having he her here hers herself him himself his how i if in into is isn it its itself just ll me mightn more most
mustn my myself needn no nor not now of off on once only or other our ours ourselves out over own re same shan she should
shouldn so some such than that the their theirs them themselves then there these they this those through to too under
until up ve very was wasn we were weren what when where which while who whom why will with wouldn would you your yours
yourself yourselves`
  .trim()
  .split(/\s+/);
