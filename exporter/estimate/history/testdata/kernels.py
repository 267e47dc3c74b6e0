"""Write kernels.json: values of SciPy, NumPy and statsmodels for the kernels of this package.

    python3 -m venv /tmp/kernels && /tmp/kernels/bin/pip install scipy==1.17.1 statsmodels==0.15.0
    /tmp/kernels/bin/python kernels.py > kernels.json
"""

import json

import numpy
import scipy
import statsmodels
from scipy import stats
from statsmodels.stats.multitest import multipletests

rng = numpy.random.default_rng(1)


def rounded(values, digits=6):
    return [round(float(v), digits) for v in values]


def cases():
    for n, digits in [(5, 6), (24, 6), (60, 1), (7, 0), (200, 1)]:
        x = rounded(20 + 3 * rng.standard_t(3, n), digits)
        y = rounded(21 + 3 * rng.standard_t(3, n + 3), digits)
        groups = [rounded(20 + g + 2 * rng.standard_normal(4 + g), digits) for g in range(5)]
        times = rounded(numpy.cumsum(rng.integers(1, 4, n)), 0)
        p = rounded(rng.uniform(0, 0.1, n))
        h, _ = stats.kruskal(*groups)
        slope, _, _, _ = stats.theilslopes(x, times)
        u = stats.mannwhitneyu(x, y, alternative="two-sided").statistic
        pairs = numpy.subtract.outer(x, y)
        walsh = [(x[i] + x[j]) / 2 for i in range(n) for j in range(i, n)]
        yield {
            "x": x, "y": y, "groups": groups, "times": times, "p": p,
            "kruskal_h": float(h),
            "theil_sen": float(slope),
            "hodges_lehmann": float(numpy.median(pairs)),
            "pseudomedian": float(numpy.median(walsh)),
            "mann_whitney_u": float(u),
            "student_975": float(stats.t.ppf(0.975, n - 1)),
            "holm": [float(v) for v in multipletests(p, method="holm")[1]],
        }


print(json.dumps({
    "versions": {"scipy": scipy.__version__, "numpy": numpy.__version__, "statsmodels": statsmodels.__version__},
    "cases": list(cases()),
}, indent=1))
