#include "shard/state/dynamic_blocks.h"

#include <math.h>
#include <string.h>

enum { SIGN = 0x80, N_MAGNITUDES = 128, N_VALUES = 256 };

/* What the header says; a test works them out again. Of first moments, the magnitudes: the sign is the code's highest bit. */
static const float SIGNED[N_MAGNITUDES] = {
    0.0F,
    5.49999982e-07F,
    3.24999996e-06F,
    7.7499999e-06F,
    2.12499999e-05F,
    4.37499984e-05F,
    6.62500024e-05F,
    8.87499991e-05F,
    0.000156249997F,
    0.000268750009F,
    0.000381249993F,
    0.000493749976F,
    0.000606250018F,
    0.000718750001F,
    0.000831249985F,
    0.000943750027F,
    0.00128125004F,
    0.00184375001F,
    0.00240624999F,
    0.00296874996F,
    0.00353124994F,
    0.00409374991F,
    0.00465625012F,
    0.00521874987F,
    0.00578125007F,
    0.00634374982F,
    0.00690625003F,
    0.00746874977F,
    0.00803124998F,
    0.00859375019F,
    0.00915625039F,
    0.00971874967F,
    0.0114062503F,
    0.0142187504F,
    0.0170312505F,
    0.0198437497F,
    0.0226562507F,
    0.0254687499F,
    0.0282812491F,
    0.0310937501F,
    0.0339062512F,
    0.0367187485F,
    0.0395312496F,
    0.0423437506F,
    0.0451562516F,
    0.047968749F,
    0.05078125F,
    0.053593751F,
    0.0564062484F,
    0.0592187494F,
    0.0620312504F,
    0.0648437515F,
    0.0676562488F,
    0.0704687536F,
    0.0732812509F,
    0.0760937482F,
    0.078906253F,
    0.0817187503F,
    0.0845312476F,
    0.0873437524F,
    0.0901562497F,
    0.092968747F,
    0.0957812518F,
    0.0985937491F,
    0.107031249F,
    0.12109375F,
    0.135156244F,
    0.149218753F,
    0.163281247F,
    0.177343756F,
    0.19140625F,
    0.205468744F,
    0.219531253F,
    0.233593747F,
    0.247656256F,
    0.26171875F,
    0.275781244F,
    0.289843738F,
    0.303906262F,
    0.317968756F,
    0.33203125F,
    0.346093744F,
    0.360156238F,
    0.374218762F,
    0.388281256F,
    0.40234375F,
    0.416406244F,
    0.430468738F,
    0.444531262F,
    0.458593756F,
    0.47265625F,
    0.486718744F,
    0.500781238F,
    0.514843762F,
    0.528906226F,
    0.54296875F,
    0.557031274F,
    0.571093738F,
    0.585156262F,
    0.599218726F,
    0.61328125F,
    0.627343774F,
    0.641406238F,
    0.655468762F,
    0.669531226F,
    0.68359375F,
    0.697656274F,
    0.711718738F,
    0.725781262F,
    0.739843726F,
    0.75390625F,
    0.767968774F,
    0.782031238F,
    0.796093762F,
    0.810156226F,
    0.82421875F,
    0.838281274F,
    0.852343738F,
    0.866406262F,
    0.880468726F,
    0.89453125F,
    0.908593774F,
    0.922656238F,
    0.936718762F,
    0.950781226F,
    0.96484375F,
    0.978906274F,
    1.0F,
};

static const float UNSIGNED[N_VALUES] = {
    0.0F,
    3.25000002e-07F,
    7.7499999e-07F,
    2.12500004e-06F,
    4.37500012e-06F,
    6.62499997e-06F,
    8.87500028e-06F,
    1.56250007e-05F,
    2.68749991e-05F,
    3.81249993e-05F,
    4.93750013e-05F,
    6.06249996e-05F,
    7.18750016e-05F,
    8.31249999e-05F,
    9.43749983e-05F,
    0.000128125001F,
    0.000184375007F,
    0.000240624999F,
    0.00029687499F,
    0.000353125011F,
    0.000409375003F,
    0.000465624995F,
    0.000521874987F,
    0.000578125007F,
    0.000634375028F,
    0.000690624991F,
    0.000746875012F,
    0.000803124974F,
    0.000859374995F,
    0.000915625016F,
    0.000971874979F,
    0.00114062498F,
    0.00142187497F,
    0.00170312496F,
    0.00198437506F,
    0.00226562493F,
    0.00254687504F,
    0.00282812491F,
    0.00310937501F,
    0.00339062489F,
    0.00367187499F,
    0.00395312486F,
    0.00423437497F,
    0.00451562507F,
    0.00479687518F,
    0.00507812481F,
    0.00535937492F,
    0.00564062502F,
    0.00592187513F,
    0.00620312523F,
    0.00648437487F,
    0.00676562497F,
    0.00704687508F,
    0.00732812518F,
    0.00760937482F,
    0.00789062493F,
    0.00817187503F,
    0.00845312513F,
    0.00873437524F,
    0.00901562534F,
    0.00929687545F,
    0.00957812462F,
    0.00985937472F,
    0.010703125F,
    0.0121093746F,
    0.0135156251F,
    0.0149218747F,
    0.0163281243F,
    0.0177343749F,
    0.0191406254F,
    0.0205468759F,
    0.0219531246F,
    0.0233593751F,
    0.0247656256F,
    0.0261718743F,
    0.0275781248F,
    0.0289843753F,
    0.0303906258F,
    0.0317968763F,
    0.033203125F,
    0.0346093737F,
    0.036015626F,
    0.0374218747F,
    0.0388281234F,
    0.0402343757F,
    0.0416406244F,
    0.0430468768F,
    0.0444531254F,
    0.0458593741F,
    0.0472656265F,
    0.0486718751F,
    0.0500781238F,
    0.0514843762F,
    0.0528906249F,
    0.0542968735F,
    0.0557031259F,
    0.0571093746F,
    0.0585156232F,
    0.0599218756F,
    0.0613281243F,
    0.0627343729F,
    0.0641406253F,
    0.0655468777F,
    0.0669531226F,
    0.068359375F,
    0.0697656274F,
    0.0711718723F,
    0.0725781247F,
    0.0739843771F,
    0.075390622F,
    0.0767968744F,
    0.0782031268F,
    0.0796093717F,
    0.0810156241F,
    0.0824218765F,
    0.0838281214F,
    0.0852343738F,
    0.0866406262F,
    0.0880468786F,
    0.0894531235F,
    0.0908593759F,
    0.0922656283F,
    0.0936718732F,
    0.0950781256F,
    0.096484378F,
    0.0978906229F,
    0.0992968753F,
    0.103515625F,
    0.110546872F,
    0.117578126F,
    0.124609374F,
    0.131640628F,
    0.138671875F,
    0.145703122F,
    0.152734369F,
    0.159765631F,
    0.166796878F,
    0.173828125F,
    0.180859372F,
    0.187890619F,
    0.194921881F,
    0.201953128F,
    0.208984375F,
    0.216015622F,
    0.223046869F,
    0.230078131F,
    0.237109378F,
    0.244140625F,
    0.251171887F,
    0.258203119F,
    0.265234381F,
    0.272265613F,
    0.279296875F,
    0.286328137F,
    0.293359369F,
    0.300390631F,
    0.307421863F,
    0.314453125F,
    0.321484387F,
    0.328515619F,
    0.335546881F,
    0.342578113F,
    0.349609375F,
    0.356640637F,
    0.363671869F,
    0.370703131F,
    0.377734363F,
    0.384765625F,
    0.391796887F,
    0.398828119F,
    0.405859381F,
    0.412890613F,
    0.419921875F,
    0.426953137F,
    0.433984369F,
    0.441015631F,
    0.448046863F,
    0.455078125F,
    0.462109387F,
    0.469140619F,
    0.476171881F,
    0.483203113F,
    0.490234375F,
    0.497265637F,
    0.504296899F,
    0.511328101F,
    0.518359363F,
    0.525390625F,
    0.532421887F,
    0.539453149F,
    0.546484351F,
    0.553515613F,
    0.560546875F,
    0.567578137F,
    0.574609399F,
    0.581640601F,
    0.588671863F,
    0.595703125F,
    0.602734387F,
    0.609765649F,
    0.616796851F,
    0.623828113F,
    0.630859375F,
    0.637890637F,
    0.644921899F,
    0.651953101F,
    0.658984363F,
    0.666015625F,
    0.673046887F,
    0.680078149F,
    0.687109351F,
    0.694140613F,
    0.701171875F,
    0.708203137F,
    0.715234399F,
    0.722265601F,
    0.729296863F,
    0.736328125F,
    0.743359387F,
    0.750390649F,
    0.757421851F,
    0.764453113F,
    0.771484375F,
    0.778515637F,
    0.785546899F,
    0.792578101F,
    0.799609363F,
    0.806640625F,
    0.813671887F,
    0.820703149F,
    0.827734351F,
    0.834765613F,
    0.841796875F,
    0.848828137F,
    0.855859399F,
    0.862890601F,
    0.869921863F,
    0.876953125F,
    0.883984387F,
    0.891015649F,
    0.898046851F,
    0.905078113F,
    0.912109375F,
    0.919140637F,
    0.926171899F,
    0.933203101F,
    0.940234363F,
    0.947265625F,
    0.954296887F,
    0.961328149F,
    0.968359351F,
    0.975390613F,
    0.982421875F,
    0.989453137F,
    0.996484399F,
    1.0F,
};

/* Below it, codes times the scale would leave the normal numbers, and not be read back as what they were. */
static const float LEAST = 0x1p-100F;

/* ---- packing ----------------------------------------------------------------------------------------------------- */

/* The number of the last of `n` values, a power of two, that is not above `x`, from 0 on. */
static unsigned below(const float *values, unsigned n, float x)
{
    unsigned i = 0;

    for (unsigned step = n / 2; step > 0; step /= 2) {
        i += values[i + step] <= x ? step : 0;
    }
    return i;
}

/* The number of the nearest: the smaller one of two. */
static unsigned nearest(const float *values, unsigned n, float x)
{
    const unsigned i = below(values, n, x);

    return i + 1 < n && values[i + 1] - x < x - values[i] ? i + 1 : i;
}

static uint8_t signed_code(float x)
{
    const unsigned magnitude = nearest(SIGNED, N_MAGNITUDES, fabsf(x));

    return (uint8_t)(x < 0.0F && magnitude > 0 ? magnitude | SIGN : magnitude);
}

/* What is above 0 stays above 0. */
static uint8_t keep_above_zero(unsigned code, float x)
{
    return (uint8_t)(code == 0 && x > 0.0F ? 1 : code);
}

static uint8_t unsigned_code(float x)
{
    return keep_above_zero(nearest(UNSIGNED, N_VALUES, x > 0.0F ? x : 0.0F), x);
}

/* 0 to 1, by SplitMix64's mixing of bits (Steele et al. 2014). */
static float chance(float x, size_t place, uint64_t step)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    uint64_t z = (step * 256 + place + 1) * 0x9E3779B97F4A7C15u ^ (uint64_t)bits << 20;
    z          = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z          = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (float)((z ^ z >> 31) >> 40) * 0x1p-24F;
}

/* One of the two codes around `x`, in 0 .. 1. */
static uint8_t either_code(float x, size_t place, uint64_t step)
{
    const float    part = x > 0.0F ? x : 0.0F;
    const unsigned i    = below(UNSIGNED, N_VALUES, part);

    if (i + 1 == N_VALUES) {
        return (uint8_t)i;
    }
    const float way = (part - UNSIGNED[i]) / (UNSIGNED[i + 1] - UNSIGNED[i]);
    return keep_above_zero(chance(x, place, step) < way ? i + 1 : i, x);
}

/* 0 where there is nothing worth keeping, NaN where a value is not finite. */
static float scale_of(const float *x, size_t n)
{
    float most = 0.0F;

    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return NAN;
        }
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    }
    return most >= LEAST ? most : 0.0F;
}

/* `step`: NULL where all become the nearest. */
static void pack_block(const float *x, size_t n, bool is_signed, const uint64_t *step, uint8_t *codes, float *scale)
{
    *scale = scale_of(x, n);
    for (size_t i = 0; i < n; i++) {
        const float part = *scale > 0.0F ? x[i] / *scale : 0.0F;

        codes[i] = is_signed ? signed_code(part) : step == NULL ? unsigned_code(part) : either_code(part, i, *step);
    }
}

static void pack(const float *x, size_t n, bool is_signed, const uint64_t *step, uint8_t *codes, float *scales)
{
    for (size_t begin = 0; begin < n; begin += FSDPI_DYNAMIC_BLOCK) {
        const size_t left = n - begin, count = left < FSDPI_DYNAMIC_BLOCK ? left : FSDPI_DYNAMIC_BLOCK;

        pack_block(x + begin, count, is_signed, step, codes + begin, &scales[begin / FSDPI_DYNAMIC_BLOCK]);
    }
}

void fsdpi_dynamic_pack(const float *x, size_t n, bool is_signed, uint8_t *codes, float *scales)
{
    pack(x, n, is_signed, NULL, codes, scales);
}

void fsdpi_dynamic_pack_step(const float *x, size_t n, bool is_signed, uint64_t step, uint8_t *codes, float *scales)
{
    pack(x, n, is_signed, &step, codes, scales);
}

/* ---- unpacking --------------------------------------------------------------------------------------------------- */

static float value_of(uint8_t code, bool is_signed)
{
    if (!is_signed) {
        return UNSIGNED[code];
    }
    return (code & SIGN) != 0 ? -SIGNED[code - SIGN] : SIGNED[code];
}

void fsdpi_dynamic_unpack(const uint8_t *codes, const float *scales, size_t begin, size_t n, bool is_signed, float *x)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = value_of(codes[begin + i], is_signed) * scales[(begin + i) / FSDPI_DYNAMIC_BLOCK];
    }
}
